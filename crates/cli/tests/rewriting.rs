//! `hearth rewrite` as its users call it.

mod support;

use std::fs;
use std::path::PathBuf;

use support::{Outcome, empty_folder, outcome, plain_hearth};

const RULES: &str = "\
vertex Video { views: int, popular: bool }
edge related;
rule spread {
    match a: Video -[related]-> b: Video;
    if a.popular and not b.popular and b.views >= 100;
    set b.popular = true;
}
";
const VERTICES: &str = "id,views,popular\na,500,true\nb,300,\nc,200,\nd,7,\n";
const EDGES: &str = "source,target\na,b\nb,c\nc,d\n";

fn folder(name: &str) -> PathBuf {
    let folder = empty_folder(&format!("rewriting-{name}"));
    for (name, text) in [("r.rules", RULES), ("v.csv", VERTICES), ("e.csv", EDGES)] {
        fs::write(folder.join(name), text).unwrap();
    }
    folder
}

fn call(folder: &PathBuf, words: &[&str]) -> Outcome {
    let mut command = plain_hearth();
    command.arg("rewrite").args(words).current_dir(folder);
    outcome(&mut command, None).unwrap()
}

#[test]
fn a_graph_is_rewritten() {
    let folder = folder("all");
    let words = ["e.csv", "r.rules", "--vertices", "v.csv", "--out"];
    for threads in ["1", "3"] {
        let out = format!("{threads}.graphml");
        let all: Vec<&str> = words
            .into_iter()
            .chain([out.as_str(), "--threads", threads])
            .collect();
        let found = call(&folder, &all);
        assert_eq!(found.code(), Some(0), "{}", found.stderr);
        assert_eq!(
            found.stdout,
            "2 applications in 2 rounds; 4 vertices and 3 edges before, 4 vertices and 3 edges \
             after\n  rule    applied\n  spread        2\n"
        );
    }
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    assert_eq!(read("1.graphml"), read("3.graphml"));
    assert_eq!(read("1.graphml").matches(">true<").count(), 3);
    let again = call(&folder, &["1.graphml", "r.rules", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&again.stdout).unwrap();
    assert_eq!(document["applications"], 0);
    let plan = call(&folder, &["1.graphml", "r.rules", "--plan"]);
    assert!(
        plan.stdout.starts_with("rule spread: about "),
        "{}",
        plan.stdout
    );
}

#[test]
fn mistakes_are_named() {
    let folder = folder("mistakes");
    for (name, text) in [
        ("typo.rules", RULES.replace("b.views", "b.vews")),
        ("sign.rules", RULES.replace("-[related]->", "-related->")),
        ("none.rules", "vertex V;\n".to_owned()),
        (
            "endless.rules",
            format!("{RULES}rule more {{ match a: Video; create b: Video; }}\n"),
        ),
        (
            "bad.graphml",
            "<graphml><graph><edge/></graph></graphml>".to_owned(),
        ),
    ] {
        fs::write(folder.join(name), text).unwrap();
    }
    for (words, wanted) in [
        (
            &["e.csv", "typo.rules"][..],
            "typo.rules: line 5, column 42: in rule `spread`, `Video` has no attribute `vews`: do \
             you mean `views`?",
        ),
        (
            &["e.csv", "sign.rules"],
            "sign.rules: line 4, column 20: `-` stands where",
        ),
        (&["e.csv", "none.rules"], "none.rules has no rules"),
        (
            &["e.csv", "endless.rules", "--rounds", "5"],
            "most often `more`",
        ),
        (
            &["bad.graphml", "r.rules"],
            "bad.graphml: the GraphML cannot be read at line 1",
        ),
        (&["e.txt", "r.rules"], "add --form"),
        (
            &["bad.graphml", "r.rules", "--vertices", "v.csv"],
            "CSV only",
        ),
        (&["no.csv", "r.rules"], "no.csv"),
    ] {
        let found = call(&folder, words);
        assert_eq!(found.code(), Some(2), "{words:?}: {}", found.stderr);
        assert!(found.stderr.contains(wanted), "{words:?}: {}", found.stderr);
        assert_eq!(found.stderr.lines().count(), 1, "{}", found.stderr);
    }
}
