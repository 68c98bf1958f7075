// A CUDA driver for tests.  Device memory is host memory at addresses of its own making, every call is written down, and any
// call can be told to fail.  A module's image is the path of a library made by the emulation; launching runs it there.

#include <cstdint>
#include <cstring>
#include <dlfcn.h>
#include <map>
#include <string>

namespace {

constexpr int INVALID = 1, NO_MEMORY = 2, NOT_FOUND = 500;
constexpr unsigned char POISON = 0xA5;

std::string log_text, failing;
int fail_after = 0, fail_code = 0, context_depth = 0;
std::map<uint64_t, std::string> allocations;


// Notes a call; the code it is to fail with, or 0.
int enter(const char* name) {
    log_text += std::string(name) + "\n";
    if (failing == name && fail_after-- == 0) {
        failing.clear();
        return fail_code;
    }
    return 0;
}

int in_context(const char* name) {
    if (const int code = enter(name)) return code;
    return context_depth > 0 ? 0 : 201;
}

bool holds(uint64_t address, size_t size) {
    for (const auto& [start, memory] : allocations)
        if (start <= address && address + size <= start + memory.size()) return true;
    return false;
}

using Run = int (*)(const unsigned*, void**, int, int);

}  // namespace

extern "C" {

const char* fake_log() { return log_text.c_str(); }
void fake_clear() { log_text.clear(); }
int fake_allocations() { return int(allocations.size()); }
int fake_context_depth() { return context_depth; }
void fake_fail(const char* name, int after, int code) { failing = name, fail_after = after, fail_code = code; }

int cuInit(unsigned) { return enter("cuInit"); }
int cuGetErrorName(int code, const char** text) {
    *text = code == NO_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : code == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : nullptr;
    return *text == nullptr;
}
int cuGetErrorString(int code, const char** text) {
    *text = code == NO_MEMORY ? "out of memory" : code == 700 ? "an illegal memory access was encountered" : nullptr;
    return *text == nullptr;
}
int cuDriverGetVersion(int* version) { return *version = 13010, enter("cuDriverGetVersion"); }
int cuDeviceGetCount(int* count) { return *count = 1, enter("cuDeviceGetCount"); }
int cuDeviceGet(int* device, int ordinal) { return *device = ordinal + 40, enter("cuDeviceGet"); }
int cuDeviceGetName(char* text, int size, int) { return strncpy(text, "Fake", size), enter("cuDeviceGetName"); }
int cuDeviceGetAttribute(int* value, int attribute, int device) {
    if (device != 40) return INVALID;
    *value = attribute == 75 ? 9 : 0;
    return enter("cuDeviceGetAttribute");
}
int cuDevicePrimaryCtxRetain(void** context, int) { return *context = &allocations, enter("cuDevicePrimaryCtxRetain"); }
int cuCtxPushCurrent_v2(void* context) {
    if (context != &allocations) return INVALID;
    return ++context_depth, 0;
}
int cuCtxPopCurrent_v2(void** context) { return *context = &allocations, --context_depth, 0; }

int cuModuleLoadData(void** module, const char* image) {
    if (const int code = in_context("cuModuleLoadData")) return code;
    *module = dlopen(image, RTLD_NOW | RTLD_LOCAL);
    return *module ? 0 : INVALID;
}
int cuModuleUnload(void* module) { return dlclose(module), in_context("cuModuleUnload"); }
int cuModuleGetFunction(void** function, void* module, const char* name) {
    if (const int code = in_context("cuModuleGetFunction")) return code;
    *function = dlsym(module, ("p0_" + std::string(name) + "_run").c_str());
    return *function ? 0 : NOT_FOUND;
}

int cuMemAlloc_v2(uint64_t* address, size_t size) {
    if (const int code = in_context("cuMemAlloc_v2")) return code;
    if (size == 0) return INVALID;
    std::string memory(size, char(POISON));
    if (memory.size() < 64) memory.reserve(64);  // outside of the string itself, so that it does not move
    const uint64_t start = reinterpret_cast<uint64_t>(memory.data());
    allocations.emplace(start, std::move(memory));
    return *address = start, 0;
}
int cuMemFree_v2(uint64_t address) {
    if (const int code = in_context("cuMemFree_v2")) return code;
    return allocations.erase(address) == 1 ? 0 : INVALID;
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t size, void*) {
    if (const int code = in_context("cuMemcpyHtoDAsync_v2")) return code;
    if (!holds(to, size)) return INVALID;
    return memcpy(reinterpret_cast<void*>(to), from, size), 0;
}
int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t size, void*) {
    if (const int code = in_context("cuMemcpyDtoHAsync_v2")) return code;
    if (!holds(from, size)) return INVALID;
    return memcpy(to, reinterpret_cast<const void*>(from), size), 0;
}
int cuPointerGetAttribute(void* value, int attribute, uint64_t address) {
    if (attribute != 9 || !holds(address, 1)) return INVALID;
    return *static_cast<int*>(value) = 0, 0;
}
int cuStreamSynchronize(void* stream) {
    log_text += "cuStreamSynchronize " + std::to_string(reinterpret_cast<uintptr_t>(stream)) + "\n";
    return enter("cuStreamSynchronize") ? fail_code : 0;
}
int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void* stream, void** arguments, void** extra) {
    if (const int code = in_context("cuLaunchKernel")) return code;
    if (shared != 0 || extra != nullptr) return INVALID;
    log_text += "  on stream " + std::to_string(reinterpret_cast<uintptr_t>(stream)) + "\n";
    const unsigned sizes[6] = {gx, gy, gz, bx, by, bz};
    return reinterpret_cast<Run>(function)(sizes, arguments, 1, 0);
}

}  // extern "C"
