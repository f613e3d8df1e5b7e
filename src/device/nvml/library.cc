#include "device/nvml/library.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/text.h"
#include "device/nvml_status.h"

namespace nos::device {
namespace {

using nvml::Feature;

struct FeatureText {
  Feature feature;
  const char* lost;  // description of the missing feature
};

constexpr FeatureText kOptional[] = {
    {Feature::kMig, "GPUs cannot be partitioned and count as GPUs without MIG"},
    {Feature::kProfileNames, "names of MIG profiles are worked out from their sizes"},
    {Feature::kMigDevices, "a MIG device without a UUID of its compute instance has no name"},
    {Feature::kHealthEvents, "errors of GPUs (XIDs) are not noticed"},
    {Feature::kDriverVersion, "the version of the driver is not known"},
    {Feature::kReadings, "not all of what GPUs measure is read"},
    {Feature::kComputeMode, "GPUs cannot be shared by MPS"},
    {Feature::kGpm, "the utilization of MIG devices is not measured"},
};

std::string PathOrDefault(std::string path) {
  if (!path.empty()) return path;
  const char* named = std::getenv("NOS_NVML_LIBRARY");  // NOLINT(concurrency-mt-unsafe)
  return named != nullptr && *named != '\0' ? named : "libnvidia-ml.so.1";
}

}  // namespace

Result<std::unique_ptr<NvmlLibrary>> NvmlLibrary::Open(std::string path) {
  path = PathOrDefault(std::move(path));
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = dlerror();  // NOLINT(concurrency-mt-unsafe): glibc keeps it per thread
    return Status(Code::kUnavailable,
                  fmt::format("cannot load NVML ({}): is the NVIDIA driver installed on this node, "
                              "and are its libraries visible here? NOS_NVML_LIBRARY may name the "
                              "file",
                              why));
  }
  std::unique_ptr<NvmlLibrary> library(new NvmlLibrary(path, handle));
  const std::vector<std::string> missing = library->MissingOf(Feature::kCore);
  if (missing.empty()) return library;
  return Status(
      Code::kUnimplemented,
      fmt::format("{} lacks {}: it is no NVML, or of a driver older than R470; update the "
                  "driver",
                  path, Join(missing, ", ")));
}

NvmlLibrary::NvmlLibrary(std::string path, void* handle)
    : path_(std::move(path)),
      handle_(handle){
#define NOS_NVML_LOAD(name, feature, parameters)                                        \
  functions_.name = reinterpret_cast<decltype(functions_.name)>(dlsym(handle_, #name)); \
  if (functions_.name == nullptr) missing_.push_back({Feature::feature, #name});
          NOS_NVML_FUNCTIONS(NOS_NVML_LOAD)
#undef NOS_NVML_LOAD
      }

      NvmlLibrary::~NvmlLibrary() {
  dlclose(handle_);
}

std::vector<std::string> NvmlLibrary::MissingOf(Feature feature) const {
  std::vector<std::string> names;
  for (const Missing& missing : missing_) {
    if (missing.feature == feature) names.push_back(missing.function);
  }
  return names;
}

bool NvmlLibrary::Has(Feature feature) const { return MissingOf(feature).empty(); }

std::vector<std::string> NvmlLibrary::Limits() const {
  std::vector<std::string> limits;
  for (const FeatureText& text : kOptional) {
    const std::vector<std::string> names = MissingOf(text.feature);
    if (names.empty()) continue;
    limits.push_back(fmt::format("the driver is too old: {} ({} lacks {})", text.lost, path_,
                                 Join(names, ", ")));
  }
  return limits;
}

Status NvmlSession::Open(nvml::Return* code) {
  if (open_) return Status::Ok();
  const nvml::Return answer = library_.call().nvmlInit_v2();
  if (code != nullptr) *code = answer;
  NOS_RETURN_IF_ERROR(ToStatus(answer, "nvmlInit_v2"));
  open_ = true;
  return Status::Ok();
}

void NvmlSession::Close() {
  if (open_) library_.call().nvmlShutdown();
  open_ = false;
}

}  // namespace nos::device
