# Installs the allocators that `./x bench heap` compares Hearth's with, as shared objects to
# preload, into target/peers/lib; research/benches/install-peers reads this file. Beside each
# NAME.so lies NAME.version, a line that names its version and origin; an allocator that is there in
# the wanted version is left alone.
#
# Debian's packages are unpacked, not installed. The sources of the others come from crates on
# crates.io that contain them; nothing of those crates' own code is built.
#
# rpmalloc 2 is in no registry: the newest rpmalloc-sys contains a commit of 1.4.

HEAP_NAMES="jemalloc-deb gperftools mimalloc-deb jemalloc mimalloc-2 mimalloc-3 snmalloc rpmalloc"

# Keeps what was built: name, object, what it is.
keep_allocator() {
    mkdir -p "$root/lib"
    cp -L "$2" "$root/lib/$1.so.new" && mv "$root/lib/$1.so.new" "$root/lib/$1.so" &&
        printf '%s\n' "$3" >"$root/lib/$1.version"
    printf 'install-peers: %s: %s\n' "$1" "$3" >&2
}

# Is it there already? Name, what its version must end in.
is_kept() {
    [ -f "$root/lib/$1.so" ] && grep -q "$2\$" "$root/lib/$1.version" 2>/dev/null
}

# A package of Debian: peer, package, the object's name in it.
from_debian() {
    local peer=$1 package=$2 folder=$root/build/debian/$2 version
    is_kept "$peer" "of Debian" && return
    if ! command -v apt-get >/dev/null 2>&1; then
        skip "$peer" "there is no apt-get to fetch $package with"
        return
    fi
    rm -rf "$folder"
    mkdir -p "$folder"
    if ! (cd "$folder" && apt-get download -q "$package" >/dev/null 2>"$folder/said"); then
        { [ "$system" = yes ] && apt-get update -q >/dev/null &&
            (cd "$folder" && apt-get download -q "$package" >/dev/null); } || {
            skip "$peer" "apt-get could not fetch $package; 'apt-get update' may be needed once"
            return
        }
    fi
    version=$(dpkg-deb -f "$folder"/*.deb Version) &&
        dpkg-deb -x "$folder"/*.deb "$folder/there" &&
        keep_allocator "$peer" "$(find "$folder/there" -name "$3" | sort | head -n 1)" \
            "$package $version of Debian" ||
        skip "$peer" "$package is not what was expected"
}

install_jemalloc_deb() { from_debian jemalloc-deb libjemalloc2 'libjemalloc.so.2'; }
install_gperftools() { from_debian gperftools libtcmalloc-minimal4 'libtcmalloc_minimal.so.4'; }
install_mimalloc_deb() { from_debian mimalloc-deb libmimalloc2.0 'libmimalloc.so.2*'; }

# Where a crate's sources lie: fetched by cargo, once. Crate, version.
crate_sources() {
    local folder=$root/build/crates/$1-$2
    if [ ! -d "$folder/from/$1" ]; then
        mkdir -p "$folder/src"
        : >"$folder/src/lib.rs"
        printf '[package]\nname = "fetch"\nversion = "0.0.0"\nedition = "2021"\n%s\n' \
            "[workspace]
[dependencies]
$1 = \"=$2\"" >"$folder/Cargo.toml"
        (cd "$folder" && cargo vendor --quiet from >/dev/null) || return
    fi
    printf '%s\n' "$folder/from/$1"
}

fetched() { # peer, crate, version; sets `sources`
    sources=$(crate_sources "$2" "$3") && return
    skip "$1" "cargo could not fetch $2 $3; the network is needed once"
    return 1
}

JEMALLOC_CRATE=0.7.1
MIMALLOC_CRATE=0.1.49
SNMALLOC_CRATE=0.7.6
RPMALLOC_CRATE=0.2.3

install_jemalloc() {
    local sources build=$root/build/jemalloc version
    is_kept jemalloc "tikv-jemalloc-sys $JEMALLOC_CRATE" && return
    have jemalloc cc gcc && have jemalloc make make || return 0
    fetched jemalloc tikv-jemalloc-sys "$JEMALLOC_CRATE" || return 0
    rm -rf "$build"
    # The crate keeps what autoconf made apart, and the version in its own.
    cp -r "$sources/jemalloc" "$build" && cp "$sources/configure/configure" "$build/"
    version=$(sed -n 's/^version = "[^+]*+\(.*\)"/\1/p' "$sources/Cargo.toml" | head -n 1)
    { (cd "$build" && sh ./configure --quiet --disable-cxx --disable-doc --with-version="$version" &&
        make -s -j2 build_lib_shared) >"$root/build/jemalloc.log" 2>&1 &&
        keep_allocator jemalloc "$build/lib/libjemalloc.so.2" \
            "jemalloc ${version%%-*}, of tikv-jemalloc-sys $JEMALLOC_CRATE"; } ||
        skip jemalloc "it does not build; see $root/build/jemalloc.log"
}

# Which of both versions in the crate.
install_mimalloc() {
    local sources folder version object=$root/build/mimalloc-$1.so
    is_kept "mimalloc-$1" "libmimalloc-sys $MIMALLOC_CRATE" && return
    have "mimalloc-$1" cc gcc || return 0
    fetched "mimalloc-$1" libmimalloc-sys "$MIMALLOC_CRATE" || return 0
    folder=$sources/c_src/mimalloc/v$1
    # Two digits each of the minor version and the patch.
    version=$(sed -n 's/^#define MI_MALLOC_VERSION \([0-9]\)\([0-9][0-9]\)\([0-9][0-9]\).*/\1.\2.\3/p' \
        "$folder/include/mimalloc.h" | sed 's/\.0/./g')
    # As its own release build does.
    { cc -O3 -DNDEBUG -DMI_MALLOC_OVERRIDE -DMI_SHARED_LIB -DMI_SHARED_LIB_EXPORT -fPIC -shared \
        -fvisibility=hidden -ftls-model=initial-exec -fno-builtin-malloc -std=gnu11 -w \
        -I "$folder/include" -o "$object" "$folder/src/static.c" -lpthread &&
        keep_allocator "mimalloc-$1" "$object" \
            "mimalloc $version, of libmimalloc-sys $MIMALLOC_CRATE"; } ||
        skip "mimalloc-$1" "cc could not build it"
}
install_mimalloc_2() { install_mimalloc 2; }
install_mimalloc_3() { install_mimalloc 3; }

install_snmalloc() {
    local sources build=$root/build/snmalloc
    is_kept snmalloc "snmalloc-sys $SNMALLOC_CRATE" && return
    have snmalloc cmake cmake && have snmalloc c++ g++ || return 0
    fetched snmalloc snmalloc-sys "$SNMALLOC_CRATE" || return 0
    { (cmake -S "$sources/upstream" -B "$build" -DCMAKE_BUILD_TYPE=Release \
        -DSNMALLOC_BUILD_TESTING=OFF &&
        cmake --build "$build" --target snmallocshim) >"$root/build/snmalloc.log" 2>&1 &&
        keep_allocator snmalloc "$build/libsnmallocshim.so" \
            "snmalloc $SNMALLOC_CRATE, of snmalloc-sys $SNMALLOC_CRATE"; } ||
        skip snmalloc "it does not build; see $root/build/snmalloc.log"
}

install_rpmalloc() {
    local sources object=$root/build/rpmalloc.so
    is_kept rpmalloc "rpmalloc-sys $RPMALLOC_CRATE" && return
    have rpmalloc cc gcc || return 0
    fetched rpmalloc rpmalloc-sys "$RPMALLOC_CRATE" || return 0
    { cc -O3 -DNDEBUG -D_GNU_SOURCE=1 -DENABLE_PRELOAD=1 -DENABLE_OVERRIDE=1 -fPIC -shared \
        -ftls-model=initial-exec -fno-builtin -std=gnu11 -w -o "$object" \
        "$sources/rpmalloc/rpmalloc/rpmalloc.c" -lpthread &&
        keep_allocator rpmalloc "$object" "rpmalloc 1.4 at b097fd0, of rpmalloc-sys $RPMALLOC_CRATE"; } ||
        skip rpmalloc "cc could not build it"
}
