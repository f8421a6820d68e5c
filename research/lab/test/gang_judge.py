"""Judges what `gang` printed in its guest: the file of the first argument."""

import json
import sys
from pathlib import Path

# Of a share that is due, which may be had less or more. Emulated processors run by turns on the
# host's, and what a guest's scheduler measures as run time includes their pauses; and the switches
# of sets, which are slow there, are at the sets' cost.
SHARE = 0.35
# Of the time in which members of a set run and no turn begins or ends: together, or interrupted by
# kernel threads of the set's own cores.
TOGETHER = 0.97


def judge(text: str) -> list[str]:
    wrong = []
    lines = text.splitlines()
    spun = {}
    for line in lines:
        words = line.split()
        if len(words) > 1 and all(word.isdigit() for word in words[1:]) and words[0] != "notifications":
            spun.setdefault(words[0], [int(word) for word in words[1:]])

    def shares(name: str, due_ms: float) -> None:
        for found in spun.get(name, [0]):
            if not (1 - SHARE) * due_ms <= found <= (1 + SHARE) * due_ms:
                wrong.append(f"{name}: {spun.get(name)} ms, not about {due_ms:g} each")
                return

    def printed(line: str) -> None:
        if line not in lines:
            wrong.append(f"'{line}' is missing")

    # Eight tasks on four CPUs for 4 s.
    shares("even", 2000)
    printed("notifications 0")
    # Three kinds of four tasks for 12 s.
    for name in ("a", "b", "o"):
        shares(name, 4000)
    # Alone in its turn, which is half of 6 s; filled, each of four tasks has a CPU.
    for name in ("alone", "beside-alone"):
        shares(name, 3000)
    for name in ("filled", "beside-filled"):
        shares(name, 6000)
    # Two CPUs each; `inner` takes turns with both others, and four tasks on two CPUs weigh twice.
    for name, tasks in (("inner", 4), ("left", 3), ("right", 2)):
        if len([ms for ms in spun.get(name, []) if ms > 500]) != tasks:
            wrong.append(f"{name}: {spun.get(name)} ms; one of {tasks} tasks starved")
    printed("mover 0-1")
    printed("moved 2-3")
    printed("no sets")
    printed("notifications later 0")
    printed("ended 0")
    if lines[:1] != ["state enabled"] or lines[-1:] != ["state disabled"]:
        wrong.append("the scheduler was not loaded, or not taken away")

    accounts = {}
    for line in lines:
        if line.startswith("{"):
            for one in json.loads(line)["sets"]:
                accounts[one["name"], one["turns"]] = one
    seen = set()
    for (name, _), one in accounts.items():
        seen.add(name)
        steady = one["together_ns"] + one["interrupted_ns"]
        whole = steady + one["apart_ns"]
        if whole and steady < TOGETHER * whole:
            wrong.append(f"{name}: together in {steady / whole:.2%} of the time between switches")
        if one["turns"] - one["switches"] > max(2, one["turns"] // 10):
            wrong.append(f"{name}: {one['switches']} of {one['turns']} turns were complete")
    for name in ("a", "b", "inner", "left", "right"):
        if name not in seen:
            wrong.append(f"there is no account of {name}")
    return wrong


if __name__ == "__main__":
    found = judge(Path(sys.argv[1]).read_text(encoding="utf-8", errors="replace"))
    print("\n".join(found) if found else "all as it must be")
