// What a GPU of a model lets be made, as its driver numbers it. Facts: the catalogue, whose layout
// table holds the placement rules; compute instances after the MIG User Guide's tables.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "device/nvml_abi.h"
#include "state.h"

namespace nos::nvml_double {

namespace nvml = nos::device::nvml;

// Profiles of GPU instances are enumerated 0 to 0x11, of compute instances 0 to 8 (nvml.h).
inline constexpr unsigned kGpuProfilePlaces = 0x12;
inline constexpr unsigned kComputeProfilePlaces = 9;

struct ProfileRow {
  unsigned place = 0;  // in the enumeration
  unsigned id = 0;
  gpu::ProfileId profile = 0;
};

// Where the catalogue does not know a number, one that no other profile has.
std::vector<ProfileRow> Rows(const gpu::Model& model);
std::optional<ProfileRow> RowOf(const gpu::Model& model, unsigned profile_id);

// Ampere tells and changes little without MIG mode, Hopper and later the same with and without.
bool TellsProfiles(const Gpu& gpu);

// The profile at a place of the enumeration: NOT_SUPPORTED where there is none (now), and
// INVALID_ARGUMENT past the end.
nvml::Return FindRow(const Gpu& gpu, unsigned place, ProfileRow& row);

nvml::GpuInstanceProfileInfo GpuProfileInfo(const gpu::Model& model, const ProfileRow& row);
// Nothing: this profile of compute instances does not exist in such GPU instances.
std::optional<nvml::ComputeInstanceProfileInfo> ComputeProfileInfo(const gpu::Model& model,
                                                                   const gpu::Profile& parent,
                                                                   unsigned place);

// Whether it fits beside what is there.
bool Fits(const Gpu& gpu, gpu::Placement placement);
// The lowest ids that are free. GPU instances count from 1, compute instances from 0.
unsigned FreeInstanceId(const Gpu& gpu);
unsigned FreeComputeId(const Instance& instance);
// The same for the same GPU and ids, for ever: a UUID comes back when the ids do.
std::string MigUuid(const Gpu& gpu, unsigned instance, unsigned compute);

}  // namespace nos::nvml_double
