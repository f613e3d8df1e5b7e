// Records of reporters as values. The JSON input is untrusted: an invalid record is reported with
// its fault and does not affect other records (docs/telemetry.md describes the format).
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/function_ref.h"
#include "base/status.h"
#include "codec/json.h"
#include "gpu/product.h"
#include "telemetry/holder.h"

namespace nos::telemetry {

using Millis = int64_t;  // since the epoch, UTC; or a duration

// Quotas of both kinds may have the same name.
inline constexpr std::string_view kCompositeQuota = "CompositeElasticQuota";  // its type
inline constexpr std::string_view kQuotaSubject = "quota",
                                  kCompositeQuotaSubject = "composite-quota";

inline constexpr size_t kMaxMetrics = 60;  // per subject

struct Instance {
  int64_t id = 0;
  std::string uuid, profile;
  int64_t start = 0, size = 1;  // slots; for an MPS share its index on the GPU, and GiB
  std::vector<Holder> holders;
  friend bool operator==(const Instance&, const Instance&) = default;
};

struct Gpu {
  int64_t index = 0;
  std::string uuid, product;
  int64_t memory = 0;  // MiB
  int64_t slots = 0;   // GiB for MPS shares; 0: not divided
  bool mig = false;
  std::string health;  // "": healthy; else why it cannot be used
  std::vector<Instance> instances;
  std::vector<Holder> holders;  // of the whole GPU
  // Sharing mode (gpu/product.h), and modes that the GPU can switch to. "": the GPU is unused, or
  // the reporter is an older version.
  std::string sharing_mode{};
  std::vector<std::string> switches{};
  bool InTurns() const { return slots > 0 && sharing_mode == gpu::kTimeSlicingMode; }
  bool SharedByMps() const { return !mig && slots > 0 && !InTurns(); }
  friend bool operator==(const Gpu&, const Gpu&) = default;
};

// Partitioning of a node's GPUs, and the holders of slices.
struct Layout {
  std::string node, mode;
  std::vector<Gpu> gpus;
  friend bool operator==(const Layout&, const Layout&) = default;
};

// Measurements of one subject at one time: "gpu/GPU-...", "instance/MIG-..."; computed by this
// server: "cluster", "node/...", "quota/...", "composite-quota/...".
struct Readings {
  std::string subject;
  std::vector<std::pair<std::string, double>> metrics;
  Json unmeasured;  // object: reason by metric; null: none
  Json processes;   // array; null: none
};

// The state of an object until the next record of it: a pod, node, quota, pool or decision.
struct Object {
  enum class Kind { kPod, kNode, kQuota, kJob, kQueue, kPool, kDecision };
  Kind kind = Kind::kPod;
  std::string key;  // pod: uid; node: name; quota: type/namespace/name; others: id
};

// A single event: a Kubernetes Event, or an XID error of a driver.
struct Happening {
  std::string object;  // "Pod/ns/name", "gpu/GPU-..."
};

struct Removed {
  // "pod", "node", "quota", "job", "queue", "pool", "gpu", and the key of the Object
  std::string what, key;
};

// All existing objects of a kind: other known objects of the kind no longer exist.
struct Present {
  std::string what;  // "pod", "node", "quota", "job", "queue", "pool"
  std::set<std::string> keys;
};

struct Unknown {};  // of a kind defined by later versions

struct Record {
  Millis at = 0;
  std::string kind;
  Json body;  // as received
  std::variant<Unknown, Readings, Layout, Object, Happening, Removed, Present> what;
};

void SetTime(Record& record, Millis at);

// Error: kInvalid, one sentence. Takes ownership of `body`.
Result<Record> ReadRecord(Json body);
// A record of this server itself for the journal:
// {"kind":"derived","at":..,"subject":..,"metrics"}.
Json DerivedRecord(Millis at, const std::string& subject,
                   const std::vector<std::pair<std::string, double>>& metrics);
Result<Record> ReadDerivedRecord(Json body);
// Returns a record that ReadRecord accepts.
Json LayoutRecord(Millis at, const Layout& layout);

// The number at `key`, or `fallback` if it is missing or not a number.
double NumberOr(const Json& object, std::string_view key, double fallback);
int64_t IntegerOr(const Json& object, std::string_view key, int64_t fallback);
// Visits the non-empty arrays in the array at `key`; none if it is missing.
void EachRow(const Json& record, std::string_view key,
             FunctionRef<void(const JsonArray& row)> visit);

}  // namespace nos::telemetry
