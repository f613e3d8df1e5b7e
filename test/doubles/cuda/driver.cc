// A double of the driver's CUDA library at its binary interface: the functions that `nos check
// --node --try` calls. The program sees one GPU with the memory of its limit:
// CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=<N>G, or 4864 MiB of a MIG device. NOS_CUDA_DOUBLE chooses a
// fault:
//
//   leaky     memory beyond the limit is given, as if no limit was set
//   small     one piece of memory is given
//   two       two GPUs are seen
//   refusing  CUDA does not start
#include <cstddef>
#include <cstdlib>
#include <string>

namespace {

std::string Variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return value == nullptr ? "" : value;
}
bool Faulty(const char* fault) { return Variable("NOS_CUDA_DOUBLE") == fault; }

size_t Limit() {
  const std::string share = Variable("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT");
  if (share.starts_with("0=")) return static_cast<size_t>(std::stoi(share.substr(2))) << 30;
  return Variable("CUDA_VISIBLE_DEVICES").starts_with("MIG-") ? size_t{4864} << 20 : 0;
}

constexpr int kOutOfMemory = 2, kNotInitialized = 3, kUnknown = 999;
bool initialized = false;
size_t given = 0, written = 0;

}  // namespace

extern "C" {

int cuInit(unsigned) {
  initialized = !Faulty("refusing");
  return initialized ? 0 : kUnknown;
}
int cuDeviceGetCount(int* count) {
  *count = Faulty("two") ? 2 : 1;
  return initialized ? 0 : kNotInitialized;
}
int cuDeviceGet(int* device, int) {
  *device = 0;
  return initialized ? 0 : kNotInitialized;
}
int cuCtxCreate_v2(void** context, unsigned, int) {
  *context = &given;
  return 0;
}
int cuMemAlloc_v2(unsigned long long* address, size_t bytes) {
  if (written != given) return kUnknown;  // the program must use what it got
  const bool refused = Faulty("small") ? given > 0 : given + bytes > Limit();
  if (refused && !Faulty("leaky")) return kOutOfMemory;
  *address = given;
  given += bytes;
  return 0;
}
int cuMemsetD8_v2(unsigned long long address, unsigned char, size_t bytes) {
  written = address + bytes;
  return 0;
}
int cuCtxSynchronize() { return 0; }

}  // extern "C"
