-- A workload with its own checks: what it prints depends on the data only.
PRAGMA journal_mode = wal;
PRAGMA cache_size = -64000;
CREATE TABLE item (id INTEGER PRIMARY KEY, kind INTEGER, name TEXT, body BLOB);
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000)
INSERT INTO item SELECT i, i * 7919 % 1009, printf('name %d', i * 31 % 65537), zeroblob(i % 300) FROM n;
CREATE INDEX by_kind ON item (kind, name);
CREATE TABLE edge AS SELECT a.id AS one, b.id AS two FROM item AS a JOIN item AS b
    ON b.id = a.id * 3 % 200000 + 1 WHERE a.id % 5 = 0;
SELECT kind, count(*), sum(length(body)), min(name), max(name) FROM item GROUP BY kind ORDER BY 2 DESC, 1 LIMIT 10;
SELECT count(*), sum(length(group_concat)) FROM
    (SELECT group_concat(name, ',') AS group_concat FROM item GROUP BY kind);
WITH RECURSIVE way (at, steps) AS (SELECT 5, 0 UNION SELECT edge.two, steps + 1 FROM way JOIN edge
    ON edge.one = way.at WHERE steps < 50) SELECT count(*), max(at) FROM way;
BEGIN;
UPDATE item SET name = upper(name) || kind WHERE id % 3 = 0;
DELETE FROM item WHERE id % 7 = 0;
COMMIT;
SELECT sum(length(name)), count(DISTINCT substr(name, 1, 8)) FROM item;
SELECT json_array_length(json_group_array(json_object('id', id, 'name', name))) FROM item WHERE kind < 200;
VACUUM;
PRAGMA integrity_check;
