// Methods, templates, overloads, exceptions that leave calls, and a static object.
#include <stdexcept>
#include <string>
#include <vector>

namespace net {
struct Server {
    int requests = 0;
    Server() { start(); }
    // At exit, behind the thread-local variables of the main thread.
    ~Server() { stop(); }
    __attribute__((noinline)) void stop() { requests = -1; }
    __attribute__((noinline)) void start() { requests = 0; }
    __attribute__((noinline)) int parse(int request) {
        if (request % 3 == 0) throw std::runtime_error("a third");
        return request;
    }
    __attribute__((noinline)) int handle(int request) {
        int parsed = parse(request);
        return ++requests + parsed;
    }
    __attribute__((noinline)) int handle(const std::string &request) {
        return handle(static_cast<int>(request.size()));
    }
};
template <typename T> struct Queue {
    std::vector<T> all;
    __attribute__((noinline)) void push(const T &one) { all.push_back(one); }
};
} // namespace net

static net::Server server;

int main() {
    net::Queue<int> queue;
    int failed = 0;
    for (int i = 1; i <= 300; i++) {
        try {
            queue.push(server.handle(i));
        } catch (const std::runtime_error &) {
            failed++;
        }
    }
    server.handle(std::string("1234"));
    return failed == 100 && queue.all.size() == 200 ? 0 : 1;
}
