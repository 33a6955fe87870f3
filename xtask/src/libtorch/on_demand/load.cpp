// Loads the C++ half of torch-sys, and libtorch with it, when one of its functions is called for the first time (`first_call.S`).

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

namespace {

// As `first_call.S` lays it out.
struct Entry {
    void *function;
    const char *name;
};

pthread_once_t once = PTHREAD_ONCE_INIT;
void *library;

// Ends the program as the system's loader does if a library is missing.
[[noreturn]] void give_up() {
    const char *reason = dlerror();
    fprintf(stderr, "libtorch cannot be loaded: %s. Set it up and build again:  cargo xtask setup && cargo build --release\n",
            reason ? reason : "no reason given");
    _exit(127);
}

// Looks first where the program looks for its libraries, then where libtorch was when it was set up.
void load() {
    library = dlopen("libtch.so", RTLD_LAZY | RTLD_LOCAL);
    if (!library) library = dlopen(LIBRARIES "/libtch.so", RTLD_LAZY | RTLD_LOCAL);
    if (!library) give_up();
}

} // namespace

// Several threads may resolve one function at once: all of them write the same.
extern "C" __attribute__((visibility("hidden"))) void tch_resolve(Entry *entry) {
    pthread_once(&once, load);
    void *function = dlsym(library, entry->name);
    if (!function) give_up();
    __atomic_store_n(&entry->function, function, __ATOMIC_RELEASE);
}
