// Devices of GPUs that are divided once and for all, what of them serves a pod, and which division
// fits a demand.
//
//   Devices devices(past, catalogue);
//   const std::vector<PodClass>& classes = devices.static_classes();
//   const std::vector<size_t> layouts = devices.ChooseLayouts(1200, wanted);
//   devices.Changes(layouts)          // for RunQueue
//
// A GPU may stay whole, have any maximal MIG layout of its model, equal MPS shares of a size that
// pods request, or time slices. A pod takes the smallest device that has what it requests.
//
// Pure. Internal to this library.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "gpu/catalogue.h"
#include "telemetryserver/savings/past.h"
#include "telemetryserver/savings/queue.h"

namespace nos::telemetryserver {

// A model of GPU, or GPUs outside the catalogue with the same memory.
struct GpuType {
  const gpu::Model* model = nullptr;  // null: outside the catalogue
  int64_t gib = 0;
  friend auto operator<=>(const GpuType&, const GpuType&) = default;
};

struct Device {
  enum class Kind { kWhole, kInstance, kShare, kTimeSlice };
  Kind kind = Kind::kWhole;
  size_t type = 0;             // index of its GpuType
  gpu::ProfileId profile = 0;  // of an instance
  int64_t gib = 0;             // memory, rounded up
  friend auto operator<=>(const Device&, const Device&) = default;
};

struct StaticLayout {
  std::string name;  // "whole", "2x3g.20gb", "4x10gb", "7 time slices"
  std::vector<DeviceOption> devices;
};

class Devices {
 public:
  // Both must outlive this object. Error: kInvalid: too many kinds of GPUs or of requests.
  static Result<Devices> Make(const Past& past, const gpu::Catalogue& catalogue);
  // Mean number over the time, if there are `gpus` GPUs (ChooseLayouts).
  double MeanOf(size_t gpus) const;

  // Class of each pod of the past.
  const std::vector<size_t>& class_of() const { return class_of_; }
  const std::vector<PodClass>& static_classes() const { return static_classes_; }
  // The same pods if each had whole GPUs only.
  const std::vector<PodClass>& whole_classes() const { return whole_classes_; }

  // A layout for each of `gpus` GPUs, index in layouts() of its type: the division that serves most
  // of `wanted`, the mean number of pods of each class at once. Further GPUs than there were are
  // like these, in even proportions.
  std::vector<size_t> ChooseLayouts(size_t gpus, const std::vector<double>& wanted) const;
  std::vector<size_t> WholeLayouts(size_t gpus) const { return std::vector<size_t>(gpus, 0); }
  const std::vector<StaticLayout>& layouts(size_t gpu) const {
    return layouts_[type_of_[PastOf(gpu)]];
  }
  // When devices appear and disappear, in order of time.
  std::vector<CapacityChange> Changes(const std::vector<size_t>& layouts) const;

 private:
  using Requests = std::vector<DeviceRequest>;

  Devices(const Past& past, const gpu::Catalogue& catalogue) : past_(past), catalogue_(catalogue) {}
  // The GPU of the past that this GPU is like.
  size_t PastOf(size_t gpu) const { return order_[gpu % order_.size()]; }
  void AddTypes();
  telemetry::Millis PresenceOf(size_t gpu) const;  // of a GPU of the past, in the time
  std::tuple<std::string, int64_t, telemetry::Millis> SortKeyOf(size_t gpu) const;
  // Error: kInvalid: the requests can be served in too many ways.
  Status AddClasses();
  void AddDevices(const std::map<Requests, size_t>& classes);
  void AddLayouts();
  std::vector<StaticLayout> MigLayouts(size_t type) const;
  size_t DeviceOf(const Device& device);
  bool Serves(const Device& device, const DeviceRequest& request) const;
  std::vector<DeviceOption> OptionsOf(const DeviceRequest& request) const;
  // Part of a GPU of this type; negative: it cannot serve the request.
  double PartOf(size_t type, const DeviceRequest& request) const;
  std::vector<DeviceOption> WholeOptionsOf(const Requests& requests) const;

  const Past& past_;
  const gpu::Catalogue& catalogue_;
  std::vector<GpuType> types_;
  std::vector<size_t> type_of_;  // of each GPU of the past
  std::vector<size_t> order_;    // of the GPUs of the past, with the types spread evenly
  std::vector<Device> all_;
  std::map<Device, size_t> index_;
  std::vector<std::vector<StaticLayout>> layouts_;  // by type; the first one is "whole"
  std::vector<size_t> class_of_;
  std::vector<PodClass> static_classes_, whole_classes_;
};

}  // namespace nos::telemetryserver
