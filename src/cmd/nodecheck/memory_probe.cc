#include "cmd/nodecheck/memory_probe.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <utility>

#include "base/process.h"
#include "base/text.h"
#include "codec/json.h"

namespace nos::cmd {
namespace {

constexpr auto kWithin = std::chrono::minutes(2);
constexpr int64_t kPiece = 64;   // MiB
constexpr int kNoLibrary = 3;    // exit status
constexpr int kOutOfMemory = 2;  // CUDA_ERROR_OUT_OF_MEMORY

// The driver API by hand: names and types are those of cuda.h 11.0, which later drivers keep.
struct Cuda {
  using Pointer = unsigned long long;  // NOLINT(google-runtime-int): CUdeviceptr
  int (*init)(unsigned) = nullptr;
  int (*count)(int*) = nullptr;
  int (*device)(int*, int) = nullptr;
  int (*create)(void**, unsigned, int) = nullptr;
  int (*allocate)(Pointer*, size_t) = nullptr;
  int (*fill)(Pointer, unsigned char, size_t) = nullptr;
  int (*wait)() = nullptr;
};

template <typename Function>
bool Bind(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

// Error: kNotFound.
Result<Cuda> Load(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);  // until the process ends
  if (library == nullptr) return NotFound(dlerror());           // NOLINT(concurrency-mt-unsafe)
  Cuda cuda;
  const bool complete =
      Bind(library, "cuInit", cuda.init) && Bind(library, "cuDeviceGetCount", cuda.count) &&
      Bind(library, "cuDeviceGet", cuda.device) && Bind(library, "cuCtxCreate_v2", cuda.create) &&
      Bind(library, "cuMemAlloc_v2", cuda.allocate) && Bind(library, "cuMemsetD8_v2", cuda.fill) &&
      Bind(library, "cuCtxSynchronize", cuda.wait);
  if (!complete) return NotFound(path + " lacks functions of CUDA's driver API");
  return cuda;
}

Status Checked(const char* function, int result) {
  if (result == 0) return Status::Ok();
  return {Code::kUnavailable, fmt::format("{} failed with CUDA error {}", function, result)};
}

// One piece more, written by the GPU. False: the driver has no memory for it.
Result<bool> Take(const Cuda& cuda) {
  constexpr size_t kBytes = size_t{kPiece} << 20;
  Cuda::Pointer piece = 0;
  const int allocated = cuda.allocate(&piece, kBytes);
  if (allocated == kOutOfMemory) return false;
  NOS_RETURN_IF_ERROR(Checked("cuMemAlloc", allocated));
  NOS_RETURN_IF_ERROR(Checked("cuMemsetD8", cuda.fill(piece, 1, kBytes)));
  NOS_RETURN_IF_ERROR(Checked("cuCtxSynchronize", cuda.wait()));
  return true;
}

Result<MemoryProbe> Probe(const Cuda& cuda, int64_t limit_mib) {
  int count = 0, device = 0;
  void* context = nullptr;  // ends with the process, and the memory with it
  NOS_RETURN_IF_ERROR(Checked("cuInit", cuda.init(0)));
  NOS_RETURN_IF_ERROR(Checked("cuDeviceGetCount", cuda.count(&count)));
  NOS_RETURN_IF_ERROR(Checked("cuDeviceGet", cuda.device(&device, 0)));
  NOS_RETURN_IF_ERROR(Checked("cuCtxCreate", cuda.create(&context, 0, device)));
  MemoryProbe probe{count, 0};
  while (probe.allocated_mib <= limit_mib) {
    NOS_ASSIGN(const bool taken, Take(cuda));
    if (!taken) break;
    probe.allocated_mib += kPiece;
  }
  return probe;
}

int64_t NumberIn(const Json& json, std::string_view key) {
  const Json* value = Find(json, key);
  return value != nullptr && value->is_int64() ? value->get_int64() : 0;
}

}  // namespace

int RunMemoryProbe(const std::string& library, int64_t limit_mib) {
  const Result<Cuda> cuda = Load(library);
  if (!cuda.ok()) {
    std::cout << cuda.status().message() << "\n";
    return kNoLibrary;
  }
  const Result<MemoryProbe> probe = Probe(*cuda, limit_mib);
  if (!probe.ok()) {
    std::cout << probe.status().message() << "\n";
    return 1;
  }
  std::cout << WriteJson(JsonObject{{"gpus", probe->gpus}, {"allocatedMiB", probe->allocated_mib}})
            << "\n";
  return 0;
}

std::vector<std::string> EnvironmentWith(const std::vector<std::string>& variables) {
  std::vector<std::string> environment = OwnEnvironment();
  for (const std::string& variable : variables) {
    const std::string name = variable.substr(0, variable.find('=') + 1);
    std::erase_if(environment, [&](const std::string& old) { return old.starts_with(name); });
    environment.push_back(variable);
  }
  return environment;
}

Result<MemoryProbe> ProbeMemory(const std::string& library, int64_t limit_mib,
                                const std::vector<std::string>& variables) {
  if (limit_mib <= 0) return NotFound("the driver does not report how much memory it has");
  std::error_code failed;
  const std::string own = std::filesystem::read_symlink("/proc/self/exe", failed).string();
  NOS_ASSIGN(const ProgramEnd end,
             RunProgram({{own, "check", "--memory-probe", std::to_string(limit_mib),
                          "--cuda-library", library},
                         EnvironmentWith(variables)},
                        {.within = kWithin}));
  const std::string said = Shortened(end.output, 200);
  if (end.how == fmt::format("exit status {}", kNoLibrary)) return NotFound(said);
  const Result<Json> json = ParseJson(end.output);
  if (end.how != "exit status 0" || !json.ok()) {
    return Status(Code::kUnavailable, fmt::format("{}: {}", end.how, said));
  }
  return MemoryProbe{NumberIn(*json, "gpus"), NumberIn(*json, "allocatedMiB")};
}

std::string ProblemOf(const MemoryProbe& probe, int64_t limit_mib) {
  if (probe.gpus != 1) return fmt::format("it sees {} GPUs in place of one", probe.gpus);
  if (probe.allocated_mib > limit_mib) {
    return fmt::format("it could use {} MiB of GPU memory, more than its {} MiB",
                       probe.allocated_mib, limit_mib);
  }
  // The CUDA context takes the rest.
  if (probe.allocated_mib < limit_mib / 4) {
    return fmt::format("it could use {} MiB of GPU memory, less than a quarter of its {} MiB",
                       probe.allocated_mib, limit_mib);
  }
  return "";
}

}  // namespace nos::cmd
