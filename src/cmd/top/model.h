// State that `nos top` shows: loaded once from a telemetry server, then updated by its event
// stream.
//
//   TopModel model;
//   model.Load(gpus, pods, &overview);
//   if (!model.Apply(event.name, data)) ...   // reload the full state
//   RenderTop(RowsOf(model, {.ns = "team-a"}), size, colour);
//
// Pure functions. Input has the format of docs/telemetry-server.md; input in any other format is
// skipped.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cmd/sandbox_view.h"
#include "codec/json.h"

namespace nos::cmd {

class TopModel {
 public:
  // Answers to GET gpus, to GET workloads (one per page), and to GET overview. `overview` is null
  // if the reader may not see it.
  void Load(const Json& gpus, const std::vector<Json>& workloads, const Json* overview);
  // Returns false if the state must be loaded again.
  bool Apply(std::string_view event, const Json& data);

  int64_t at() const { return at_; }  // server time, milliseconds since the epoch
  const std::map<std::string, Json>& nodes() const { return nodes_; }  // by name, as in GET gpus
  const std::map<std::string, Json>& pods() const { return pods_; }  // by uid, as in GET workloads
  const Json& overview() const { return overview_; }                 // null: not known

 private:
  void TakeNodes(const Json& data);
  void TakePods(const Json& data, std::string_view key);

  int64_t at_ = 0;
  std::map<std::string, Json> nodes_, pods_;
  Json overview_;
};

enum class TopSort { kState, kName, kUtilization, kMemory, kAge };
// "state", "name", ...; nullopt for an unknown name.
std::optional<TopSort> TopSortNamed(std::string_view name);
std::vector<std::string> TopSortNames();

struct TopOptions {
  std::string ns;  // only this namespace; "": all
  TopSort sort = TopSort::kState;
};

struct TopGpu {
  GpuRow row;
  std::string health;                      // "": healthy
  std::optional<double> utilization;       // 0..1
  std::optional<double> memory, capacity;  // MiB
};

struct TopPod {
  std::string name, state, slice, where, why;  // name: "ns/name"; slice: requested or held slice
  std::optional<double> utilization, memory;
  Duration age{};  // time running or pending
  std::optional<Duration> starts_in{};
};

struct TopRows {
  std::string ns;  // only this namespace; "": all
  size_t nodes = 0;
  std::optional<double> allocated,
      used;  // of the whole cluster; nullopt if a namespace is selected
  size_t running = 0, waiting = 0;
  Duration silent{};  // age of the samples
  std::vector<TopGpu> gpus;
  std::vector<TopPod> pods;  // pods that have not ended
};
TopRows RowsOf(const TopModel& model, const TopOptions& options);
// The same as JSON for programs: {"at","overview","nodes":[..],"pods":[..]}, as in the API.
Json TopJson(const TopModel& model, const TopOptions& options);

// The selected row, as an index into TopRows::gpus or TopRows::pods: the pages shown contain it.
struct TopCursor {
  std::optional<size_t> gpu{}, pod{};
};

// A whole frame: at most `size.lines` lines of at most `size.columns` characters, each followed by
// '\n'. `note` is the second line.
std::string RenderTop(const TopRows& rows, ViewSize size, bool colour, std::string_view note,
                      const TopCursor& cursor = {});

// "1g.5gb", "2 x 3g.20gb, gpu-memory": requests of a pod record, without cpu and memory.
std::string AsksOf(const Json& pod);

// Note that the server has not checked the user's access to some namespaces yet, from GET session;
// "" if all are checked or the user selects one namespace.
std::string UnaskedNote(const Json& session, const std::string& ns);

}  // namespace nos::cmd
