// The instances that a GPU model allows, with the driver's numbering. Facts: the catalogue, whose
// layout table holds the placement rules; compute instances after the tables of the MIG User Guide.
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
  unsigned place = 0;  // index of the enumeration
  unsigned id = 0;
  gpu::ProfileId profile = 0;
};

// If the catalogue has no profile id, uses one that no other profile has.
std::vector<ProfileRow> Rows(const gpu::Model& model);
std::optional<ProfileRow> RowOf(const gpu::Model& model, unsigned profile_id);

// Ampere reports and changes little without MIG mode; Hopper and later work the same with and
// without.
bool ReportsProfiles(const Gpu& gpu);

// The profile at an index of the enumeration: NOT_SUPPORTED if there is none (now), and
// INVALID_ARGUMENT past the end.
nvml::Return FindRow(const Gpu& gpu, unsigned place, ProfileRow& row);

nvml::GpuInstanceProfileInfo GpuProfileInfo(const gpu::Model& model, const ProfileRow& row);
// Empty if this compute-instance profile does not exist in such GPU instances.
std::optional<nvml::ComputeInstanceProfileInfo> ComputeProfileInfo(const gpu::Model& model,
                                                                   const gpu::Profile& parent,
                                                                   unsigned place);

// True if it fits beside the present instances.
bool Fits(const Gpu& gpu, gpu::Placement placement);
// The lowest free ids. GPU instances count from 1, compute instances from 0.
unsigned FreeInstanceId(const Gpu& gpu);
unsigned FreeComputeId(const Instance& instance);
// Always the same for the same GPU and ids, so a UUID returns with its ids.
std::string MigUuid(const Gpu& gpu, unsigned instance, unsigned compute);

}  // namespace nos::nvml_double
