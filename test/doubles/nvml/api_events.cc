// The exported event functions. Signatures and answers: device/nvml_abi.h and its sources.
#include <algorithm>
#include <map>
#include <memory>
#include <mutex>

#include "driver.h"
#include "export.h"

namespace nos::nvml_double {
namespace {

constexpr unsigned long long kSupported = nvml::kEventXidCritical | nvml::kEventDoubleBitEcc;

// Registered event types by GPU. For one owner thread.
using Registered = std::map<int, unsigned long long>;

Registered& SetOf(nvml::EventSet set) { return *reinterpret_cast<Registered*>(set); }

nvml::Return TakeEvent(const Registered& registered, const Context& context,
                       nvml::EventData* data) {
  std::vector<Event>& events = context.state.events;
  const auto next = std::find_if(events.begin(), events.end(), [&](const Event& event) {
    const auto found = registered.find(event.gpu);
    return found != registered.end() && (found->second & event.type) != 0;
  });
  if (next != events.end()) {
    *data = {static_cast<nvml::Device>(ToHandle(Handle::kGpu, {next->gpu, 0, 0})), next->type,
             next->data, next->instance, next->compute};
    events.erase(next);
    return nvml::kSuccess;
  }
  const bool lost = std::any_of(registered.begin(), registered.end(),
                                [&](const auto& entry) { return context.gpu(entry.first).lost; });
  return lost ? nvml::kGpuIsLost : nvml::kTimeout;
}

}  // namespace

EXPORTED nvml::Return nvmlEventSetCreate(nvml::EventSet* set) {
  return Run("nvmlEventSetCreate", -1, [&](const Context&) {
    *set = reinterpret_cast<nvml::EventSet>(std::make_unique<Registered>().release());
    return nvml::kSuccess;
  });
}

EXPORTED nvml::Return nvmlEventSetFree(nvml::EventSet set) {
  const std::unique_ptr<Registered> owned(&SetOf(set));
  return nvml::kSuccess;
}

EXPORTED nvml::Return nvmlDeviceGetSupportedEventTypes(nvml::Device device,
                                                       unsigned long long* types) {
  return Run("nvmlDeviceGetSupportedEventTypes", FromHandle(Handle::kGpu, device).gpu,
             [&](const Context&) {
               *types = kSupported;
               return nvml::kSuccess;
             });
}

EXPORTED nvml::Return nvmlDeviceRegisterEvents(nvml::Device device, unsigned long long types,
                                               nvml::EventSet set) {
  const int gpu = FromHandle(Handle::kGpu, device).gpu;
  return Run("nvmlDeviceRegisterEvents", gpu, [&](const Context&) {
    if ((types & ~kSupported) != 0) return nvml::kNotSupported;
    SetOf(set)[gpu] |= types;
    return nvml::kSuccess;
  });
}

EXPORTED nvml::Return nvmlEventSetWait_v2(nvml::EventSet set, nvml::EventData* data,
                                          unsigned timeout_milliseconds) {
  return WaitForChange(std::chrono::milliseconds(timeout_milliseconds), [&] {
    return Run("nvmlEventSetWait_v2", -1,
               [&](const Context& context) { return TakeEvent(SetOf(set), context, data); });
  });
}

}  // namespace nos::nvml_double
