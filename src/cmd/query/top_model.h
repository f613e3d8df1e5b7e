// What `nos top` shows, as it is by what a telemetry server has said: loaded once, then kept
// current by its stream of events.
//
//   TopModel model;
//   model.Load(gpus, pods, &overview);
//   if (!model.Apply(event.name, data)) ...   // load anew
//   RenderTop(RowsOf(model, {.ns = "team-a"}), size, colour);
//
// Pure. What comes is as docs/telemetry-server.md has it; what is not is left out.
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
  // Answers to GET gpus, to GET workloads (one page after another), and to GET overview; null: not
  // for the reader's eyes.
  void Load(const Json& gpus, const std::vector<Json>& workloads, const Json* overview);
  // False: this cannot be gone on from.
  bool Apply(std::string_view event, const Json& data);

  int64_t at() const { return at_; }  // the server's time, milliseconds since the epoch
  const std::map<std::string, Json>& nodes() const { return nodes_; }  // by name, as in GET gpus
  const std::map<std::string, Json>& pods() const { return pods_; }    // by uid, as GET workloads
  const Json& overview() const { return overview_; }                   // null: not known

 private:
  void TakeNodes(const Json& data);
  void TakePods(const Json& data, std::string_view key);

  int64_t at_ = 0;
  std::map<std::string, Json> nodes_, pods_;
  Json overview_;
};

enum class TopSort { kState, kName, kUtilization, kMemory, kAge };
// "state", "name", ...; nothing: there is no such.
std::optional<TopSort> TopSortNamed(std::string_view name);
std::vector<std::string> TopSortNames();

struct TopOptions {
  std::string ns;  // only that namespace; "": all
  TopSort sort = TopSort::kState;
};

struct TopGpu {
  GpuRow row;
  std::string health;                      // "": well
  std::optional<double> utilization;       // 0..1
  std::optional<double> memory, capacity;  // MiB
};

struct TopPod {
  std::string name, state, slice, where, why;  // name: "ns/name"; slice: what it asks for or holds
  std::optional<double> utilization, memory;
  Duration age{};  // since it started, or waits
  std::optional<Duration> starts_in{};
};

struct TopRows {
  std::string ns;  // only of that namespace; "": all
  size_t nodes = 0;
  std::optional<double> allocated, used;  // of the whole cluster; nothing: of a namespace
  size_t running = 0, waiting = 0;
  Duration silent{};  // of what is measured
  std::vector<TopGpu> gpus;
  std::vector<TopPod> pods;  // those that have not ended
};
TopRows RowsOf(const TopModel& model, const TopOptions& options);
// The same for programs: {"at","overview","nodes":[..],"pods":[..]}, as the API has them.
Json TopJson(const TopModel& model, const TopOptions& options);

// A whole frame: at most `size.lines` lines of at most `size.columns` characters, '\n' after each.
// `note`: the second line.
std::string RenderTop(const TopRows& rows, ViewSize size, bool colour, std::string_view note);

// "1g.5gb", "2 x 3g.20gb, gpu-memory": what a pod record asks for, without cpu and memory.
std::string AsksOf(const Json& pod);

// That there are namespaces of which nobody has said yet whether the user sees them, by GET
// session;
// "": there are none, or the user wants to see one alone.
std::string UnaskedNote(const Json& session, const std::string& ns);

}  // namespace nos::cmd
