"""What a guest is made of: Debian's kernel, busybox, our init, the command and its libraries."""

import fcntl
import lzma
import os
import re
import shutil
import stat
import struct
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
KERNEL_PACKAGE = "linux-image-cloud-amd64"
# A release whose kernel has sched_ext: Debian 13's own (6.12) is built without.
SCHED_EXT_RELEASE = "trixie-backports"
ARCHIVE = "http://deb.debian.org/debian"
ARCHIVE_KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
BUSYBOX_PACKAGE = "busybox-static"
QEMU = "qemu-system-x86_64"
QEMU_PACKAGE = "qemu-system-x86"
LZ4_LEGACY = b"\x02\x21\x4c\x18"
ZSTD = b"\x28\xb5\x2f\xfd"
# Places where the guest mounts something over the archive's contents.
COVERED = ("/proc", "/sys", "/dev")


class Unfit(Exception):
    """This machine cannot run the lab; the message says what would help."""


class Unusable(Exception):
    """A file that the user named cannot go into a guest."""


def need_qemu(say) -> str:
    """The path of qemu; installs it if we may."""
    found = shutil.which(QEMU)
    if found:
        return found
    install = ["apt-get", "install", "-y", "--no-install-recommends", QEMU_PACKAGE]
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise Unfit(f"there is no {QEMU}; install it: sudo {' '.join(install)}")
    say(f"installing {QEMU_PACKAGE} ...")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for attempt in (install, ["apt-get", "update", "-q"], install):
        subprocess.run(attempt, env=environment, capture_output=True, check=False)
        found = shutil.which(QEMU)
        if found:
            return found
    raise Unfit(f"'{' '.join(install)}' failed; run it to see why")


# ---- the cache ------------------------------------------------------------------------------


def cache_folder() -> Path:
    """Packages are unpacked here once, for all checkouts of this user."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "hearth" / "lab"


def cached(name: str, make) -> Path:
    """`cache/name`, made by `make(folder)` if it is not there; whole or not at all."""
    cache = cache_folder()
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with open(cache / "lock", "w", encoding="utf-8") as lock:
            # Two sessions that start at once fetch only once.
            fcntl.flock(lock, fcntl.LOCK_EX)
            wanted = cache / name
            if not wanted.exists():
                with tempfile.TemporaryDirectory(dir=cache) as scratch:
                    made = make(Path(scratch))
                    os.rename(made, wanted)
            return wanted
    except OSError as error:
        raise Unfit(f"the cache {cache} cannot be used: {error}") from None


def unpacked(package: str, folder: Path, environment: dict[str, str] | None = None) -> Path:
    """Fetches a Debian package, as any user, and unpacks it below `folder`.

    `environment` may make apt look elsewhere.
    """
    for tool in ("apt-get", "dpkg"):
        if not shutil.which(tool):
            raise Unfit(
                f"there is no {tool}, and {package} comes from Debian; set HEARTH_LAB_KERNEL to a "
                "bzImage and HEARTH_LAB_BUSYBOX to a static busybox instead"
            )
    fetch = ["apt-get", "download", "-q", package]
    result = subprocess.run(
        fetch, cwd=folder, capture_output=True, text=True, check=False, env=environment
    )
    packages = list(folder.glob("*.deb"))
    if result.returncode or not packages:
        why = (result.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise Unfit(f"'{' '.join(fetch)}' failed: {why}; perhaps run: sudo apt-get update")
    into = folder / "unpacked"
    subprocess.run(["dpkg", "-x", packages[0], into], check=True, capture_output=True)
    packages[0].unlink()
    return into


def kernel(say) -> Path:
    """A kernel that qemu boots: Debian's for clouds, unpacked to spare the guest doing it."""
    own = os.environ.get("HEARTH_LAB_KERNEL")
    if own:
        if not os.access(own, os.R_OK):
            raise Unfit(f"HEARTH_LAB_KERNEL is {own}, which cannot be read")
        return Path(own)

    def make(folder: Path) -> Path:
        say(f"fetching {KERNEL_PACKAGE} ...")
        show = subprocess.run(
            ["apt-cache", "depends", KERNEL_PACKAGE], capture_output=True, text=True, check=False
        )
        concrete = re.search(r"Depends: (linux-image-\S+)", show.stdout)
        if not concrete:
            raise Unfit(
                f"apt knows no {KERNEL_PACKAGE}; run: sudo apt-get update, or set "
                "HEARTH_LAB_KERNEL to a bzImage"
            )
        boot = unpacked(concrete[1], folder) / "boot"
        image = next(boot.glob("vmlinuz-*")).read_bytes()
        config = next(boot.glob("config-*")).read_text(encoding="utf-8")
        kept = folder / "kernel"
        kept.write_bytes(uncompressed(image, config) or image)
        return kept

    return cached("kernel", make)


def sched_ext_kernel(say) -> Path:
    """A kernel with sched_ext, from a release of Debian that has one.

    apt gets a configuration and lists of its own, so that the system's stay as they are.
    """
    own = os.environ.get("HEARTH_LAB_SCHED_EXT_KERNEL")
    if own:
        if not os.access(own, os.R_OK):
            raise Unfit(f"HEARTH_LAB_SCHED_EXT_KERNEL is {own}, which cannot be read")
        return Path(own)

    def make(folder: Path) -> Path:
        say(f"fetching {KERNEL_PACKAGE} of {SCHED_EXT_RELEASE} ...")
        environment = foreign_apt(folder)
        found = newest_dependencies(environment)
        if not found:
            raise Unfit(
                f"apt cannot read {SCHED_EXT_RELEASE}, whose kernel has sched_ext; set "
                "HEARTH_LAB_SCHED_EXT_KERNEL to a bzImage, or see to the network"
            )
        for number, package in enumerate(found):
            place = folder / f"package{number}"
            place.mkdir()
            unpacked(package, place, environment)
        # Up to 7.0 they lie in /boot, later beside the modules.
        images = sorted(folder.glob("package*/**/vmlinuz*"))
        configs = sorted(folder.glob("package*/unpacked/boot/config-*"))
        configs += sorted(folder.glob("package*/unpacked/usr/lib/modules/*/config"))
        if not images or not configs:
            raise Unfit(f"no kernel lies in {' and '.join(found)}; set HEARTH_LAB_SCHED_EXT_KERNEL")
        config = configs[0].read_text(encoding="utf-8")
        if "CONFIG_SCHED_CLASS_EXT=y" not in config:
            raise Unfit(f"{found[0]} has no sched_ext; set HEARTH_LAB_SCHED_EXT_KERNEL")
        image = images[0].read_bytes()
        kept = folder / "kernel"
        kept.write_bytes(uncompressed(image, config) or image)
        return kept

    return cached("kernel-sched-ext", make)


def foreign_apt(folder: Path) -> dict[str, str]:
    """An environment in which apt knows `SCHED_EXT_RELEASE` and nothing else."""
    state = folder / "apt"
    for part in ("lists/partial", "cache/archives/partial"):
        (state / part).mkdir(parents=True)
    (state / "sources").write_text(
        f"deb [signed-by={ARCHIVE_KEYS}] {ARCHIVE} {SCHED_EXT_RELEASE} main\n", encoding="utf-8"
    )
    settings = {
        "Dir::Etc::sourcelist": state / "sources",
        "Dir::Etc::sourceparts": "-",
        "Dir::State": state,
        "Dir::State::lists": state / "lists",
        "Dir::State::status": "/dev/null",
        "Dir::Cache": state / "cache",
    }
    text = "".join(f'{name} "{value}";\n' for name, value in settings.items())
    (state / "apt.conf").write_text(text, encoding="utf-8")
    environment = {**os.environ, "APT_CONFIG": str(state / "apt.conf")}
    if shutil.which("apt-get"):
        update = ["apt-get", "update", "-q"]
        subprocess.run(update, env=environment, capture_output=True, check=False)
    return environment


def newest_dependencies(environment: dict[str, str]) -> list[str]:
    """The packages in which the newest kernel lies: since 7.1 it has one beside its image's."""
    found: list[str] = []
    package = KERNEL_PACKAGE
    if not shutil.which("apt-cache"):
        return found
    for _ in range(2):
        show = subprocess.run(
            ["apt-cache", "depends", package],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
        )
        names = re.findall(r"Depends: (linux-(?:image|binary|base)-\d\S+)", show.stdout)
        found += [name for name in names if name not in found]
        image = [name for name in names if name.startswith("linux-image-")]
        if not image:
            break
        package = image[0]
    return found


def uncompressed(image: bytes, config: str) -> bytes | None:
    """The ELF kernel within a bzImage, where qemu could start it.

    Decompression in software emulation takes seconds. qemu starts an ELF kernel only through its
    PVH entry. The offsets are those of Linux's boot protocol 2.08
    (Documentation/arch/x86/boot.rst).
    """
    if "CONFIG_PVH=y" not in config or image[0x202:0x206] != b"HdrS":
        return None
    setup_sectors = image[0x1F1] or 4
    offset, length = struct.unpack_from("<II", image, 0x248)
    start = (setup_sectors + 1) * 512 + offset
    payload = image[start : start + length]
    try:
        if payload.startswith(b"\xfd7zXZ\x00"):
            plain = lzma.LZMADecompressor(lzma.FORMAT_XZ).decompress(payload)
        elif payload.startswith(LZ4_LEGACY):
            plain = lz4(payload)
        elif payload.startswith(ZSTD) and shutil.which("zstd"):
            # The size of the plain image, four bytes, is not part of the frame.
            plain = subprocess.run(
                ["zstd", "-dc"], input=payload[:-4], capture_output=True, check=False
            ).stdout
        else:
            return None
    except (lzma.LZMAError, IndexError, struct.error):
        return None
    return plain if plain.startswith(b"\x7fELF") else None


def lz4(payload: bytes) -> bytes:
    """LZ4's legacy frames, as in Debian's kernels: a magic, then blocks behind their lengths.

    The formats are those of doc/lz4_Frame_format.md and lz4_Block_format.md in lz4's repository.
    Python has no module for it. Once a kernel, this takes seconds.
    """
    whole = bytearray()
    at = len(LZ4_LEGACY)
    # The kernel's build puts the size of the plain image, four bytes, after the last block.
    while at + 4 < len(payload):
        (length,) = struct.unpack_from("<I", payload, at)
        whole += lz4_block(payload[at + 4 : at + 4 + length])
        at += 4 + length
    return bytes(whole)


def lz4_block(block: bytes) -> bytearray:
    """Sequences of literals and a repetition of what came before; the last has literals only."""
    plain = bytearray()
    at = 0

    def longer(length: int) -> int:
        """A length of 15 goes on in bytes until one is not 255."""
        nonlocal at
        if length == 15:
            while True:
                more = block[at]
                at += 1
                length += more
                if more != 255:
                    break
        return length

    while True:
        token = block[at]
        at += 1
        literals = longer(token >> 4)
        plain += block[at : at + literals]
        at += literals
        if at >= len(block):
            return plain
        distance = block[at] | block[at + 1] << 8
        at += 2
        # The shortest repetition worth a sequence has four bytes.
        length = longer(token & 15) + 4
        start = len(plain) - distance
        if distance >= length:
            plain += plain[start : start + length]
        else:
            # A repetition of bytes that it is about to write.
            pattern = plain[start:]
            plain += (pattern * (length // distance + 1))[:length]


def busybox(say) -> Path:
    own = os.environ.get("HEARTH_LAB_BUSYBOX")
    if own:
        if not os.access(own, os.R_OK):
            raise Unfit(f"HEARTH_LAB_BUSYBOX is {own}, which cannot be read")
        return Path(own)

    def make(folder: Path) -> Path:
        say(f"fetching {BUSYBOX_PACKAGE} ...")
        root = unpacked(BUSYBOX_PACKAGE, folder)
        return next(path for path in root.glob("**/bin/busybox") if path.is_file())

    return cached("busybox", make)


# ---- what goes in ---------------------------------------------------------------------------


def command_path(command: str) -> Path:
    """Finds a command as a shell would."""
    found = shutil.which(command)
    if not found:
        raise Unusable(f"'{command}' is not a program here, neither a path nor in PATH")
    return Path(os.path.abspath(found))


def gathered(files: list[Path]) -> dict[str, Path]:
    """Guest path to host path: the files, and all that their programs need to start.

    A file keeps its path, so that the command line means the same in the guest. Libraries are
    those that `ldd` names; what a program opens later by itself must be given with --file.
    """
    found: dict[str, Path] = {}
    waiting = [Path(os.path.abspath(path)) for path in files]
    while waiting:
        path = waiting.pop()
        if str(path) in found:
            continue
        if path.is_dir():
            waiting += [entry for entry in path.rglob("*") if not entry.is_dir()]
            continue
        if str(path).startswith(tuple(f"{folder}/" for folder in COVERED)):
            raise Unusable(f"{path} cannot be taken along: the guest has its own {path.parts[1]}")
        try:
            head = path.read_bytes()[:256]
        except OSError as error:
            raise Unusable(f"{path} cannot be taken along: {error.strerror}") from None
        found[str(path)] = path
        if head.startswith(b"\x7fELF"):
            waiting += libraries(path)
        elif head.startswith(b"#!"):
            waiting += interpreters(head)
    return found


def libraries(program: Path) -> list[Path]:
    result = subprocess.run(["ldd", program], capture_output=True, text=True, check=False)
    lost = re.search(r"^\s*(\S+) => not found", result.stdout, re.MULTILINE)
    if lost:
        raise Unusable(f"{program} needs {lost[1]}, which is not found here")
    # `name => /path (address)` and, for the loader, `/path (address)`.
    return [Path(path) for path in re.findall(r"(?:=> |^\s*)(/\S+) \(0x", result.stdout, re.M)]


def interpreters(head: bytes) -> list[Path]:
    """Those of a script's first line, `env`'s argument included. /bin/sh is always there."""
    words = head[2:].split(b"\n", 1)[0].decode("utf-8", "replace").split()
    if words and words[0] in ("/bin/sh", "/usr/bin/sh"):
        return []
    needed = [Path(words[0])] if words else []
    if words and words[0].endswith("/env") and len(words) > 1:
        needed.append(command_path(words[-1]))
    return needed


# ---- the archive ----------------------------------------------------------------------------


class Archive:
    """A cpio archive of the "newc" kind, which the kernel unpacks into its first root.

    Written here because it holds /dev/console, which only root could make for cpio to read.
    """

    def __init__(self, out) -> None:
        self.out = out
        self.number = 0
        self.known: set[str] = set()

    def entry(self, path: str, mode: int, data: bytes = b"", device: tuple[int, int] = (0, 0)):
        """One member; the folders above it come first."""
        if path in self.known:
            return
        above = os.path.dirname(path)
        if above not in ("/", ""):
            self.folder(above)
        self.known.add(path)
        self.number += 1
        name = path.lstrip("/").encode() + b"\0"
        links = 2 if stat.S_ISDIR(mode) else 1
        fields = (self.number, mode, 0, 0, links, 0, len(data), 0, 0, *device, len(name), 0)
        header = b"070701" + b"".join(b"%08X" % value for value in fields)
        for part in (header + name, data):
            self.out.write(part + b"\0" * (-len(part) % 4))

    def folder(self, path: str) -> None:
        self.entry(path, stat.S_IFDIR | 0o755)

    def link(self, path: str, target: str) -> None:
        self.entry(path, stat.S_IFLNK | 0o777, target.encode())

    def file(self, path: str, data: bytes, mode: int = 0o644) -> None:
        self.entry(path, stat.S_IFREG | mode, data)

    def end(self) -> None:
        self.entry("TRAILER!!!", 0)


def write_archive(out, shell: Path, job: str, files: dict[str, Path]) -> None:
    """The guest's root: Debian's merged folders, busybox, our init, the job, the files."""
    archive = Archive(out)
    for name in ("bin", "sbin", "lib", "lib64"):
        archive.folder(f"/usr/{name}")
        archive.link(f"/{name}", f"usr/{name}")
    for name in ("dev", "proc", "sys", "tmp", "run", "root", "etc", "lab/bin"):
        archive.folder(f"/{name}")
    archive.entry("/dev/console", stat.S_IFCHR | 0o600, device=(5, 1))
    archive.file("/etc/passwd", b"root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n")
    archive.file("/etc/group", b"root:x:0:\nnogroup:x:65534:\n")
    archive.file("/lab/busybox", shell.read_bytes(), 0o755)
    for applet in applets(shell):
        archive.link(f"/lab/bin/{applet}", "/lab/busybox")
    archive.file("/init", (HERE / "init").read_bytes(), 0o755)
    archive.file("/lab/job", job.encode())
    for path, host in sorted(files.items()):
        # /lib/x and /usr/lib/x are one file where Debian's links stand.
        plain = re.sub(r"^/(bin|sbin|lib|lib64)/", r"/usr/\1/", path)
        archive.file(plain, host.read_bytes(), stat.S_IMODE(host.stat().st_mode) & 0o777)
    if "/usr/bin/sh" not in archive.known:
        archive.link("/usr/bin/sh", "/lab/busybox")
    archive.end()


def applets(shell: Path) -> list[str]:
    result = subprocess.run([shell, "--list"], capture_output=True, text=True, check=False)
    if result.returncode:
        raise Unfit(f"{shell} does not run here: {result.stderr.strip() or 'no reason given'}")
    return result.stdout.split()
