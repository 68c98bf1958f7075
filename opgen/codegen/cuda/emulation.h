// Runs emitted CUDA C on the CPU: the words of CUDA that opgen's emitter uses, in C++17, for tests and for reading along.
//
// A block's threads run one after another.  Where they wait for each other at __syncthreads each is a fiber (a ucontext):
// a fiber runs until it waits, then the next one does; when all wait, all go on.  Blocks run one after another too.  The
// order of threads and of blocks can be reversed: a program without races gives the same results either way.

#ifndef OPGEN_EMULATION_H
#define OPGEN_EMULATION_H

#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <ucontext.h>
#include <utility>

#define __global__
#define __device__
#define __forceinline__ inline
#define __shared__ static thread_local
#define __launch_bounds__(threads)

struct uint3 {
    unsigned x, y, z;
};

static thread_local uint3 threadIdx, blockIdx, blockDim, gridDim;

static inline float __int_as_float(int bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

static inline int __float_as_int(float value) {
    int bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline double __longlong_as_double(long long bits) {
    double value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

static inline long long __double_as_longlong(double value) {
    long long bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

namespace emulation {

enum Status { OK = 0, DIVERGENT_BARRIER = 1, NO_MEMORY = 2 };

constexpr std::size_t STACK_BYTES = 256 * 1024;

// One thread of a block, on a stack of its own.
struct Fiber {
    ucontext_t context;
    char* stack;
    bool done;
};

struct Block {
    ucontext_t scheduler;
    Fiber* fibers;
    unsigned count;
    unsigned current;
    void (*body)(void*);
    void* argument;
};

static thread_local Block block;

static inline uint3 position(unsigned thread) {
    return {thread % blockDim.x, thread / blockDim.x % blockDim.y, thread / blockDim.x / blockDim.y};
}

static inline void enter() {
    block.body(block.argument);
    block.fibers[block.current].done = true;
    swapcontext(&block.fibers[block.current].context, &block.scheduler);
}

static inline void wait() {
    swapcontext(&block.fibers[block.current].context, &block.scheduler);
}

// Runs every fiber until it waits or ends; the number of those that have ended.
static inline unsigned advance(bool reversed) {
    unsigned ended = 0;
    for (unsigned i = 0; i < block.count; ++i) {
        block.current = reversed ? block.count - 1 - i : i;
        threadIdx = position(block.current);
        swapcontext(&block.scheduler, &block.fibers[block.current].context);
        ended += block.fibers[block.current].done;
    }
    return ended;
}

static inline Status run_fibers(bool reversed) {
    for (unsigned i = 0; i < block.count; ++i) {
        Fiber& fiber = block.fibers[i];
        fiber.done = false;
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = fiber.stack;
        fiber.context.uc_stack.ss_size = STACK_BYTES;
        fiber.context.uc_link = nullptr;
        makecontext(&fiber.context, enter, 0);
    }
    for (;;) {
        const unsigned ended = advance(reversed);
        if (ended == block.count) return OK;
        if (ended != 0) return DIVERGENT_BARRIER;
    }
}

static inline void run_threads(bool reversed) {
    for (unsigned i = 0; i < block.count; ++i) {
        threadIdx = position(reversed ? block.count - 1 - i : i);
        block.body(block.argument);
    }
}

// Fibers with stacks for the threads of one block.
struct Fibers {
    Fiber* fibers;
    unsigned count;

    explicit Fibers(unsigned wanted) : fibers(new Fiber[wanted]), count(wanted) {
        for (unsigned i = 0; i < count; ++i) fibers[i].stack = static_cast<char*>(std::malloc(STACK_BYTES));
    }
    ~Fibers() {
        for (unsigned i = 0; i < count; ++i) std::free(fibers[i].stack);
        delete[] fibers;
    }
    bool complete() const {
        for (unsigned i = 0; i < count; ++i)
            if (fibers[i].stack == nullptr) return false;
        return true;
    }
};

static inline Status run_grid(bool barriers, bool reversed) {
    const Fibers fibers(barriers ? block.count : 0);
    if (!fibers.complete()) return NO_MEMORY;
    block.fibers = fibers.fibers;
    const unsigned long long blocks = 1ull * gridDim.x * gridDim.y * gridDim.z;
    for (unsigned long long i = 0; i < blocks; ++i) {
        const unsigned long long at = reversed ? blocks - 1 - i : i;
        blockIdx = {unsigned(at % gridDim.x), unsigned(at / gridDim.x % gridDim.y),
                    unsigned(at / gridDim.x / gridDim.y)};
        if (!barriers) {
            run_threads(reversed);
        } else if (const Status status = run_fibers(reversed)) {
            return status;
        }
    }
    return OK;
}

template <class... P>
struct Call {
    void (*kernel)(P...);
    void** arguments;

    template <std::size_t... I>
    void run(std::index_sequence<I...>) const {
        kernel(*static_cast<std::remove_cv_t<P>*>(arguments[I])...);
    }
    static void body(void* self) {
        static_cast<const Call*>(self)->run(std::index_sequence_for<P...>());
    }
};

// Runs a kernel over a grid.  `sizes` are gridDim.x, .y, .z, blockDim.x, .y, .z; `arguments` point to the arguments, as
// cuLaunchKernel takes them.
template <class... P>
int launch(void (*kernel)(P...), const unsigned* sizes, void** arguments, int barriers, int reversed) {
    Call<P...> call{kernel, arguments};
    gridDim = {sizes[0], sizes[1], sizes[2]};
    blockDim = {sizes[3], sizes[4], sizes[5]};
    block.count = blockDim.x * blockDim.y * blockDim.z;
    block.body = Call<P...>::body;
    block.argument = &call;
    return run_grid(barriers != 0, reversed != 0);
}

}  // namespace emulation

static inline void __syncthreads() { emulation::wait(); }

#endif
