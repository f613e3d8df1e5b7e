// What reporters tell, one record each, as values. Read from JSON that anybody may have written:
// what is wrong with a record is said, and hurts no other (docs/telemetry.md has the format).
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
#include "gpu/board.h"
#include "telemetry/wire/holder.h"

namespace nos::telemetry {

using Millis = int64_t;  // since the epoch, UTC; or a span

// Both kinds of quotas may have the same name.
inline constexpr std::string_view kCompositeQuota = "CompositeElasticQuota";  // its type
inline constexpr std::string_view kQuotaSubject = "quota",
                                  kCompositeQuotaSubject = "composite-quota";

inline constexpr size_t kMostMetrics = 60;  // of one subject

struct Instance {
  int64_t id = 0;
  std::string uuid, profile;
  int64_t start = 0, size = 1;  // slots; of an MPS share its number on its GPU, and GiB
  std::vector<Holder> holders;
  friend bool operator==(const Instance&, const Instance&) = default;
};

struct Gpu {
  int64_t index = 0;
  std::string uuid, product;
  int64_t memory = 0;  // MiB
  int64_t slots = 0;   // GiB for MPS shares; 0: it is not divided
  bool mig = false;
  std::string health;  // "": well; else why it cannot be used
  std::vector<Instance> instances;
  std::vector<Holder> holders;  // of the whole
  // In which way it is used (gpu/board.h), and what else it may become. "": nothing is on it, or a
  // reporter before this did not say.
  std::string way{};
  std::vector<std::string> switches{};
  bool InTurns() const { return slots > 0 && way == gpu::kTimeWay; }
  bool SharedByMps() const { return !mig && slots > 0 && !InTurns(); }
  friend bool operator==(const Gpu&, const Gpu&) = default;
};

// How the GPUs of a node are cut, and who holds what.
struct Layout {
  std::string node, mode;
  std::vector<Gpu> gpus;
  friend bool operator==(const Layout&, const Layout&) = default;
};

// Measurements of one subject at one time: "gpu/GPU-...", "instance/MIG-...", and of this server's
// own making "cluster", "node/...", "quota/...", "composite-quota/...".
struct Readings {
  std::string subject;
  std::vector<std::pair<std::string, double>> metrics;
  Json unmeasured;  // an object: why, by metric; null: nothing
  Json processes;   // an array; null: nothing
};

// A thing that is, until it is said to be otherwise: a pod, a node, a quota, a pool, a decision.
struct Object {
  enum class Kind { kPod, kNode, kQuota, kJob, kQueue, kPool, kDecision };
  Kind kind = Kind::kPod;
  std::string key;  // pod: uid; node: name; quota: type/namespace/name; others: id
};

// Something that happened once: an Event of Kubernetes, an XID of a driver.
struct Happening {
  std::string object;  // "Pod/ns/name", "gpu/GPU-..."
};

struct Removed {
  // "pod", "node", "quota", "job", "queue", "pool", "gpu", and the key of the Object
  std::string what, key;
};

// All that there are of one kind: the others that are known are there no more.
struct Present {
  std::string what;  // "pod", "node", "quota", "job", "queue", "pool"
  std::set<std::string> keys;
};

struct Unknown {};  // of a kind that later versions may know

struct Record {
  Millis at = 0;
  std::string kind;
  Json body;  // as it came
  std::variant<Unknown, Readings, Layout, Object, Happening, Removed, Present> what;
};

void SetTime(Record& record, Millis at);

// Error: kInvalid, in one sentence. Takes `body`.
Result<Record> ReadRecord(Json body);
// Of this server's own making, to be journaled: {"kind":"derived","at":..,"subject":..,"metrics"}.
Json DerivedRecord(Millis at, const std::string& subject,
                   const std::vector<std::pair<std::string, double>>& metrics);
Result<Record> ReadDerivedRecord(Json body);
// As a record that ReadRecord reads.
Json LayoutRecord(Millis at, const Layout& layout);

// A number at a key, or `fallback` when it is missing or none.
double NumberOr(const Json& object, std::string_view key, double fallback);
int64_t IntegerOr(const Json& object, std::string_view key, int64_t fallback);
// Visits the elements of an array at a key that are arrays and not empty; none where it is missing.
void EachRow(const Json& record, std::string_view key,
             FunctionRef<void(const JsonArray& row)> visit);

}  // namespace nos::telemetry
