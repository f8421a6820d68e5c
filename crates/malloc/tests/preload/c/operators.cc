// The operators of C++: blocks, exceptions, new-handlers, and one heap behind all forms.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "check.h"

static const std::size_t impossible = static_cast<std::size_t>(PTRDIFF_MAX) - 100;

static void blocks() {
    for (std::size_t size = 0; size < 300000; size = size * 2 + 1) {
        delete static_cast<char *>(hide(::operator new(size)));
        char *block = static_cast<char *>(hide(::operator new(size)));
        std::memset(block, 1, size);
        ::operator delete(block);
        ::operator delete(hide(::operator new(size)), size);
        ::operator delete[](hide(::operator new[](size)));
        ::operator delete[](hide(::operator new[](size)), size);
        ::operator delete(hide(::operator new(size, std::nothrow)), std::nothrow);
        ::operator delete[](hide(::operator new[](size, std::nothrow)), std::nothrow);
        // All forms share C's heap.
        std::free(hide(::operator new(size)));
        ::operator delete(hide(std::malloc(size)));
    }
    ::operator delete(nullptr);
    ::operator delete[](nullptr);
}

static void aligned() {
    for (std::size_t align = 1; align <= 1 << 24; align *= 2) {
        const auto value = static_cast<std::align_val_t>(align);
        for (std::size_t size : {1, 100, 5000, 300000}) {
            void *block = hide(::operator new(size, value));
            CHECK(is_aligned(block, align));
            std::memset(block, 1, size);
            ::operator delete(block, value);
            block = hide(::operator new[](size, value));
            CHECK(is_aligned(block, align));
            ::operator delete[](block, size, value);
            block = hide(::operator new(size, value, std::nothrow));
            CHECK(is_aligned(block, align));
            ::operator delete(block, value, std::nothrow);
            block = hide(::operator new[](size, value, std::nothrow));
            CHECK(is_aligned(block, align));
            ::operator delete[](block, value, std::nothrow);
            ::operator delete(hide(::operator new(size, value)), size, value);
            ::operator delete[](hide(::operator new[](size, value)), value);
        }
    }
}

struct Guard {
    int &count;
    ~Guard() { count++; }
};

template <typename F> static bool throws(F operation) {
    int ends = 0;
    try {
        Guard guard{ends};
        operation();
    } catch (const std::bad_alloc &) {
        CHECK(ends == 1);
        return true;
    }
    return false;
}

static void refusals() {
    const auto wide = static_cast<std::align_val_t>(256);
    for (int round = 0; round < 3; round++) {
        CHECK(throws([] { hide(::operator new(hide_size(impossible))); }));
        CHECK(throws([] { hide(::operator new[](hide_size(impossible))); }));
        CHECK(throws([&] { hide(::operator new(hide_size(impossible), wide)); }));
        CHECK(throws([&] { hide(::operator new[](hide_size(impossible), wide)); }));
        CHECK(throws([] { std::vector<char> none(hide_size(impossible)); hide(none.data()); }));
        CHECK(!throws([] { hide(::operator new(10)); }));
        CHECK(hide(::operator new(hide_size(impossible), std::nothrow)) == nullptr);
        CHECK(hide(::operator new[](hide_size(impossible), std::nothrow)) == nullptr);
        CHECK(hide(::operator new(hide_size(impossible), wide, std::nothrow)) == nullptr);
        CHECK(hide(::operator new[](hide_size(impossible), wide, std::nothrow)) == nullptr);
    }
}

static int calls;

static void try_three_times() {
    if (++calls == 3) std::set_new_handler(nullptr);
}

static void give_up() {
    calls++;
    throw std::runtime_error("given up");
}

static void handlers() {
    const auto wide = static_cast<std::align_val_t>(256);
    for (int aligned = 0; aligned < 2; aligned++) {
        for (int nothrow = 0; nothrow < 2; nothrow++) {
            calls = 0;
            std::set_new_handler(try_three_times);
            const std::size_t size = hide_size(impossible);
            if (nothrow) {
                CHECK(hide(aligned ? ::operator new(size, wide, std::nothrow)
                                   : ::operator new(size, std::nothrow)) == nullptr);
            } else {
                CHECK(throws([&] { hide(aligned ? ::operator new(size, wide) : ::operator new(size)); }));
            }
            CHECK(calls == 3);
        }
    }
    calls = 0;
    std::set_new_handler(give_up);
    try {
        hide(::operator new(hide_size(impossible)));
        CHECK(!"it came back");
    } catch (const std::runtime_error &error) {
        CHECK(std::strcmp(error.what(), "given up") == 0);
    }
    CHECK(calls == 1);
    std::set_new_handler(nullptr);
}

static void library() {
    std::map<int, std::string> words;
    for (int i = 0; i < 20000; i++) words[i * 7919 % 20011] = std::string(i % 100, 'a');
    std::vector<std::shared_ptr<std::string>> shared;
    for (const auto &[number, word] : words) shared.push_back(std::make_shared<std::string>(word));
    std::thread other([&] { shared.clear(); });
    other.join();
    struct alignas(64) Line { char bytes[64]; };
    std::vector<Line> lines(1000);
    CHECK(is_aligned(lines.data(), 64));
    // A thrown exception occupies a block of its own, in this thread or another.
    std::thread thrower([] {
        for (int i = 0; i < 1000; i++) {
            try {
                throw std::runtime_error(std::string(200, 'x'));
            } catch (const std::exception &error) {
                CHECK(std::strlen(error.what()) == 200);
            }
        }
    });
    thrower.join();
}

int main(int, char **arguments) {
    static const struct named_case cases[] = {
        {"blocks", blocks}, {"aligned", aligned}, {"refusals", refusals},
        {"handlers", handlers}, {"library", library}};
    return run_case(cases, sizeof cases / sizeof *cases, arguments);
}
