// Stand-ins for the Rust functions of torch-sys that its C++ half calls when libtorch reads or writes streams. From a library of its own
// the C++ half cannot reach those functions, so each call ends the program with a message that says how to build it instead.

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace {

[[noreturn]] void refuse() {
    fputs("libtorch reads and writes no streams where it is loaded on demand: build with SHOAL_LIBTORCH_AT_START=1\n", stderr);
    abort();
}

} // namespace

extern "C" {
bool tch_write_stream_destructor(void *) { refuse(); }
bool tch_write_stream_write(void *, const uint8_t *, size_t, size_t *) { refuse(); }
bool tch_read_stream_destructor(void *) { refuse(); }
bool tch_read_stream_stream_position(void *, uint64_t *) { refuse(); }
bool tch_read_stream_seek_start(void *, uint64_t, uint64_t *) { refuse(); }
bool tch_read_stream_seek_end(void *, int64_t, uint64_t *) { refuse(); }
bool tch_read_stream_read(void *, uint8_t *, size_t, size_t *) { refuse(); }
}
