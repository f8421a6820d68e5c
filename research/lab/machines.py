"""What a description says: a machine, what qemu needs to emulate it, and what its guest must show.

Pure but for `load` and `names`, which read the folder of descriptions.
"""

import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "machines"

# ACPI: a node is at distance 10 from itself, lower values are reserved, 255 means unreachable;
# Linux refuses a table whose remote distances are not above 10.
LOCAL = 10
UNREACHABLE = 255
# From Linux in Debian's build (CONFIG_NODES_SHIFT=10): the weight of a distance against a tie.
NODES_MAX = 1024
# qemu and its legacy APIC ids end here; more would also take too long to emulate.
CPUS_MAX = 64
# Debian's kernel takes 60 of these at its start.
NODE_0_MIB_MIN = 96
# Number of leading parts of `Machine.place` that are equal for CPUs that share a socket, a die, a
# core; all parts name the thread itself.
SOCKET, DIE, CORE, THREAD = 1, 2, 3, 4
# Sharing of cache levels, as told to qemu: each die has an L3, each core an L2, and, unlike in any
# real processor, each thread an L1.
CACHES = {"L1d": THREAD, "L1i": THREAD, "L2": CORE, "L3": DIE}


class Mistake(Exception):
    """Something that the user wrote and can correct; the message says where."""


@dataclass
class Machine:
    """One virtual machine. CPUs are numbered threads first, then cores, dies, sockets."""

    name: str
    title: str
    source: str
    sockets: int
    dies: int  # in a socket
    cores: int  # in a die
    threads: int  # in a core
    cpu: str  # qemu's -cpu: vendor, features, and with them the sizes of caches
    nodes: list[list[int]]  # the CPUs of each node; a node may have none
    memory_mib: list[int]  # of each node
    distances: list[list[int]]  # [from][to], 10 is local
    caches: dict[str, str] = field(default_factory=dict)  # sizes as the guest's sysfs writes them

    @property
    def cpus(self) -> int:
        return self.sockets * self.dies * self.cores * self.threads

    def place(self, cpu: int) -> tuple[int, int, int, int]:
        """Socket, die in it, core in that, thread in that."""
        rest, thread = divmod(cpu, self.threads)
        rest, core = divmod(rest, self.cores)
        socket, die = divmod(rest, self.dies)
        return socket, die, core, thread

    def together(self, cpu: int, depth: int) -> list[int]:
        """The CPUs whose place agrees with that of `cpu` in the first `depth` parts."""
        mine = self.place(cpu)[:depth]
        return [other for other in range(self.cpus) if self.place(other)[:depth] == mine]

    def node_of(self, cpu: int) -> int:
        return next(node for node, cpus in enumerate(self.nodes) if cpu in cpus)


def names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load(name: str) -> Machine:
    """The machine of that name, or of a file if the name ends in .toml."""
    path = Path(name) if name.endswith(".toml") else FOLDER / f"{name}.toml"
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise Mistake(f"there is no machine '{name}'; there are: {', '.join(names())}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise Mistake(f"{path} cannot be read: {error}") from None
    return parse(path.stem, text, str(path))


def parse(name: str, text: str, where: str) -> Machine:
    """A machine from the text of its description; `where` is for messages."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Mistake(f"{where}: not TOML: {error}") from None

    def wrong(what: str) -> Mistake:
        return Mistake(f"{where}: {what}")

    def number(key: str, default: int | None = None) -> int:
        value = table.pop(key, default)
        if type(value) is not int or not 1 <= value <= CPUS_MAX:
            raise wrong(f"`{key}` must be a number from 1 to {CPUS_MAX}")
        return value

    def words(key: str, default: str | None = None) -> str:
        value = table.pop(key, default)
        if not isinstance(value, str) or not value:
            raise wrong(f"`{key}` must be a text")
        return value

    parts = {key: number(key, 1) for key in ("sockets", "dies", "cores", "threads")}
    cpus = parts["sockets"] * parts["dies"] * parts["cores"] * parts["threads"]
    if cpus > CPUS_MAX:
        raise wrong(f"{cpus} CPUs; {CPUS_MAX} are the most")

    lists = table.pop("nodes", [f"0-{cpus - 1}"])
    if not isinstance(lists, list) or not lists:
        raise wrong('`nodes` must be a list of CPU lists, such as ["0-1", "2,3"]')
    nodes = [cpu_list(item, cpus, wrong) for item in lists]
    if sorted(cpu for node in nodes for cpu in node) != list(range(cpus)):
        raise wrong(f"each of the CPUs 0-{cpus - 1} must be in one node, and in no other")

    memory = table.pop("memory_mib", None)
    if type(memory) is int:
        memory = [memory] * len(nodes)
    if not isinstance(memory, list) or len(memory) != len(nodes) or not all(
        type(size) is int and size >= 0 for size in memory
    ):
        raise wrong(f"`memory_mib` must be one number, or {len(nodes)}, one a node")
    if memory[0] < NODE_0_MIB_MIN:
        raise wrong(f"node 0 needs {NODE_0_MIB_MIN} MiB or more: the kernel lies there")

    distances = table.pop("distances", None)
    if distances is None and len(nodes) == 1:
        distances = [[LOCAL]]
    check_distances(distances, len(nodes), wrong)

    caches = table.pop("caches", {})
    if not isinstance(caches, dict) or not set(caches) <= set(CACHES) or not all(
        isinstance(size, str) for size in caches.values()
    ):
        raise wrong(f"`caches` may give sizes as texts for {', '.join(CACHES)}")

    machine = Machine(
        name=name,
        title=words("title"),
        source=words("source"),
        cpu=words("cpu", "max"),
        nodes=nodes,
        memory_mib=memory,
        distances=distances,
        caches=caches,
        **parts,
    )
    if table:
        raise wrong(f"`{sorted(table)[0]}` means nothing here; see research/lab/README.md")
    return machine


def cpu_list(text, cpus: int, wrong) -> list[int]:
    """`0-2,5` as [0, 1, 2, 5]; an empty text is a node without CPUs."""
    found = []
    for item in text.split(",") if isinstance(text, str) and text else []:
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", item.strip())
        if not match:
            raise wrong(f"'{text}' is not a CPU list, such as 0-2,5")
        first, last = int(match[1]), int(match[2] or match[1])
        if first > last or last >= cpus:
            raise wrong(f"'{item}' is not within the CPUs 0-{cpus - 1}")
        found += range(first, last + 1)
    if not isinstance(text, str):
        raise wrong(f"{text!r} is not a CPU list in quotes")
    return found


def check_distances(table, nodes: int, wrong) -> None:
    if not isinstance(table, list) or len(table) != nodes or not all(
        isinstance(row, list) and len(row) == nodes for row in table
    ):
        raise wrong(f"`distances` must be {nodes} rows of {nodes} numbers")
    for i, row in enumerate(table):
        for j, value in enumerate(row):
            right = value == LOCAL if i == j else type(value) is int and LOCAL < value < UNREACHABLE
            if not right:
                raise wrong(
                    f"distance {value!r} from node {i} to {j}: {LOCAL} is local, and others lie "
                    f"between {LOCAL} and {UNREACHABLE}; Linux refuses the whole table otherwise"
                )


# ---- what qemu is told ----------------------------------------------------------------------


def arguments(machine: Machine) -> list[str]:
    """qemu's options for processors, memory, nodes and distances."""
    told = ["-cpu", machine.cpu, "-m", f"{sum(machine.memory_mib)}M", "-smp"]
    told.append(
        f"{machine.cpus},sockets={machine.sockets},dies={machine.dies},"
        f"cores={machine.cores},threads={machine.threads}"
    )
    for node, size in enumerate(machine.memory_mib):
        if size:
            told += ["-object", f"memory-backend-ram,id=ram{node},size={size}M"]
        backed = f",memdev=ram{node}" if size else ""
        told += ["-numa", f"node,nodeid={node}{backed}"]
    for cpu in range(machine.cpus):
        socket, die, core, thread = machine.place(cpu)
        # qemu knows of dies only where a socket has several.
        die_id = f",die-id={die}" if machine.dies > 1 else ""
        told += [
            "-numa",
            f"cpu,node-id={machine.node_of(cpu)},socket-id={socket}{die_id},"
            f"core-id={core},thread-id={thread}",
        ]
    for i, row in enumerate(machine.distances):
        for j, value in enumerate(row):
            told += ["-numa", f"dist,src={i},dst={j},val={value}"]
    return told


# ---- what the guest must show ---------------------------------------------------------------


def fallback_orders(machine: Machine) -> list[list[int]]:
    """Where Linux looks for pages when a node is full, nearest first, for each node.

    This is `find_next_best_node` of Linux 6.1 in mm/page_alloc.c, in our words: the nearest node
    that is left; a node with a lower number than the asking one counts as one farther; between
    equals, the one that earlier nodes put first in a group of equal distance less often; then the
    lower number. Nodes without memory are passed over.

    The published order of the four-node machine rests on the third rule: for node 1, node 0 at
    13 + 1 ties with node 2 at 14.
    """
    chosen_before = [0] * len(machine.nodes)
    with_memory = [node for node, size in enumerate(machine.memory_mib) if size]
    orders = []
    for node, row in enumerate(machine.distances):
        order = [node] if node in with_memory else []
        last = node
        while left := [other for other in with_memory if other not in order]:

            def cost(other: int) -> tuple[int, int]:
                # A node with CPUs has work of its own: Linux counts it as one farther.
                busy = bool(machine.nodes[other])
                value = row[other] + (other < node) + busy
                return value * NODES_MAX + chosen_before[other], other

            best = min(left, key=cost)
            if row[best] != row[last]:
                chosen_before[best] += 1
            order.append(best)
            last = best
        orders.append(order)
    return orders


def listed(cpus: list[int]) -> str:
    """[0, 1, 2, 5] as Linux writes it: `0-2,5`."""
    ranges: list[list[int]] = []
    for cpu in sorted(cpus):
        if ranges and cpu == ranges[-1][1] + 1:
            ranges[-1][1] = cpu
        else:
            ranges.append([cpu, cpu])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in ranges)


def facts(machine: Machine) -> str:
    """What `research/lab/test/facts` must print inside this machine, to the letter."""
    lines = [f"cpus {listed(list(range(machine.cpus)))}"]
    for node, row in enumerate(machine.distances):
        cpus = listed(machine.nodes[node]) or "none"
        lines.append(f"node {node}: cpus {cpus}; distances {' '.join(map(str, row))}")
    for node, order in enumerate(fallback_orders(machine)):
        if machine.memory_mib[node]:
            lines.append(f"node {node} falls back: {' '.join(map(str, order))}")
    for cpu in range(machine.cpus):
        threads = listed(machine.together(cpu, CORE))
        levels = "".join(
            f"; {name} {machine.caches[name]} {listed(machine.together(cpu, shared_by))}"
            for name, shared_by in CACHES.items()
            if name in machine.caches
        )
        lines.append(
            f"cpu {cpu}: package {listed(machine.together(cpu, SOCKET))} "
            f"die {listed(machine.together(cpu, DIE))} thread {threads} "
            f"node {machine.node_of(cpu)}{levels}"
        )
    return "\n".join(lines) + "\n"
