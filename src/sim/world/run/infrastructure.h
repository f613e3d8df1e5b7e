// What stands behind node pools in a virtual cluster: for each pool a NodePool, the MachineSet that
// it scales, and who makes and takes away as many nodes as that wants.
//
//   Infrastructure infrastructure(env, judge, {.join = ..., .leave = ...});
//   NOS_RETURN_IF_ERROR(infrastructure.Add({.name = "a100", .node = {.gpus = {{"A100-40GB"}}}}));
//   infrastructure.SetFault("a100", PoolFault::kLate);
//
// A node joins PoolSpec::start after it was asked for. When fewer are wanted, that one goes whose
// Machine, or Node, has the annotation cluster.x-k8s.io/delete-machine; else one that has not come
// yet, or the newest. What goes wrong is drawn (FaultRates), or set for a pool. One thread.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/world/events/actor.h"
#include "sim/world/node/environment.h"
#include "sim/world/checks/move_judge.h"
#include "sim/world/model/pool_specs.h"

namespace nos::sim {

// What a pool does from now on, whatever it is asked.
enum class PoolFault {
  kNone,
  kLate,    // nodes come after three times as long
  kNever,   // nodes do not come, until this ends
  kPartly,  // every second node does not
  kWrong,   // nodes come with a GPU less than they should have
  kOther,   // another node is taken away than the one that was named
  kRefused  // its scaled object answers 503
};
// "late"; kNone is "nothing".
std::optional<PoolFault> FindPoolFault(std::string_view name);
std::string PoolFaultNames();

// How a pool stands.
struct PoolState {
  std::string name;
  int min = 0, max = 0;
  int wanted = 0, nodes = 0, coming = 0;
  int made = 0, removed = 0;  // nodes, since the start
  double node_hours = 0, cost = 0;
};

class Infrastructure final : public Actor {
 public:
  struct Hooks {
    std::function<Status(const NodeSpec&)> join;
    std::function<void(const std::string& node)> leave;  // for good
  };

  // What `env` refers to, and `judge`, must outlive it.
  Infrastructure(const Environment& env, MoveJudge& judge, Hooks hooks);

  // Makes its objects, and has its first nodes join. Error: kAlreadyExists, or as its nodes have
  // it.
  Status Add(const PoolSpec& spec);
  // Error: kNotFound.
  Status SetFault(std::string_view pool, PoolFault fault);
  // Somebody else has deleted the node, and it does not come back.
  void SeeLost(const std::string& node);
  // Whether a request to this path is refused now: of the scaled object of a pool.
  bool Refuses(std::string_view path) const;

  bool any() const { return !pools_.empty(); }
  std::vector<PoolState> States() const;  // by name

  const std::string& name() const override { return name_; }
  bool Step() override;
  std::optional<Time> NextWake() const override;

 private:
  struct Member {
    std::string name = {};
    std::optional<Time> due = {};  // none: it does not come
    bool wrong = false;
    std::optional<Time> joined = {};
  };
  struct Pool {
    PoolSpec spec;
    PoolFault fault = PoolFault::kNone;
    Time refused_until{};
    int wanted = 0, told = -1;  // told: how many there are
    int made = 0, removed = 0, asked = 0;
    double node_seconds = 0;  // of nodes that are gone
    std::vector<Member> members;
    int There() const;
    PoolBounds Bounds() const { return {spec.name, spec.min, spec.max}; }
  };
  // The number of nodes that are wanted, as the API server has it.
  struct Wanted {
    cluster::ObjectMeta meta;
    std::optional<int> replicas;
  };
  static Status ReadWanted(JsonSource json, Wanted& to);

  bool Follow(Pool& pool);
  bool JoinDue(Pool& pool);
  bool TellCount(Pool& pool);
  void Ask(Pool& pool);
  Member& Enter(Pool& pool);
  Status Join(const Pool& pool, Member& member);
  template <typename Holds>
  size_t Newest(const Pool& pool, const Holds& holds) const;
  void RemoveOne(Pool& pool);
  bool IsNamed(const Pool& pool, const Member& member);
  void Forget(Pool& pool, size_t member);
  bool MayCome(const Pool& pool) const;
  void ScheduleRefusals(const std::string& pool);
  void Note(const std::string& what) { env_.log.Note(name_, what); }

  std::string name_ = "infrastructure";
  Environment env_;
  MoveJudge& judge_;
  Hooks hooks_;
  kube::Client client_;
  kube::Cache<Wanted> sets_;
  std::map<std::string, Pool, std::less<>> pools_;
};

}  // namespace nos::sim
