// nos_scheduler_differential: kube-scheduler and nos decide on the same pods in the same clusters,
// generated from a seed.
//
//   nos_scheduler_differential --config FILE --plane DIR [--seed 1] [--scenarios 1000] [--dump DIR]
//   ... --seed 1 --scenario 815 -v               repeats that scenario
//   ... --devices 34 --clusters 120              clusters with devices and pods with ResourceClaims
//   nos_scheduler_differential --config FILE --decide DUMP   nos's decision, with no control plane
//
// FILE is kube-scheduler.yaml. DIR is the directory of a control plane whose kube-scheduler logs
// with --vmodule=schedule_one=10 and uses the same file (scheduler_differential_test.sh). A
// scenario is one decided pod; each cluster has kPodsOfCluster of them, one after the other. An
// unschedulable pod is removed again; a pod with several best nodes is moved to the first by name,
// so that a seed is reproducible.
//
// Both must agree on: whether a node exists for the pod; the feasibility of each node; the weighted
// score of every plugin for each feasible node; the chosen node being one of the best; the reasons
// and their counts; and, for a preemption, the harm done. compare.cc lists the allowed differences,
// docs/scheduler-differences.md explains them.
//
// --devices takes N of Kubernetes 1.N (dra_differential_test.sh sets the gates). There the choice
// among feasible nodes is not compared, and what kube-scheduler allocates stays: pods are not
// moved, so a seed repeats the questions, but not the places of earlier pods. --dump has all
// objects.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <map>

#include "base/file.h"
#include "kube/cache.h"
#include "scheduler_differential/claim_steps.h"
#include "scheduler_differential/compare.h"
#include "scheduler_differential/compare_devices.h"
#include "scheduler_differential/generate.h"

namespace nos::differential {
namespace {

constexpr int kPodsOfCluster = 12, kPodsOfDeviceCluster = 5;
constexpr int kAttempts = 3;

struct Flags {
  std::string plane, config, dump, decide;
  uint64_t seed = 1;
  int scenarios = 1000;
  int scenario = -1;
  int clusters = 0;  // 0: as many as `scenarios` need
  DeviceApi devices;
  int pods_of_cluster() const { return devices.any() ? kPodsOfDeviceCluster : kPodsOfCluster; }
  bool no_resizes = false;
  bool verbose = false;
};

struct Tally {
  int done = 0, bound = 0, refused = 0, preempted = 0, gated = 0, scored = 0, again = 0,
      disagreed = 0, clusters = 0, held = 0;
  struct OfKind {
    int bound = 0, refused = 0, held = 0, disagreed = 0;
  };
  std::map<std::string, OfKind> kinds;  // of claims
  std::map<std::string, int> allowed;   // differences that are explained
};

using SharedPod = std::shared_ptr<const cluster::Pod>;

std::string KeyOf(const Json& pod) {
  return kube::KeyOf(FindString(pod, "metadata", "namespace"), FindString(pod, "metadata", "name"));
}

// Draws one of the objects of a kind; null: there is none, and nothing is drawn.
const Json* AnyOf(Draw& draw, const Picture& picture, const char* kind) {
  std::vector<const Json*> all;
  for (const Json& object : picture.objects) {
    if (FindString(object, "kind") == kind) all.push_back(&object);
  }
  return all.empty() ? nullptr : all[draw.Between(0, static_cast<int>(all.size()) - 1)];
}

// The condition PodScheduled=False written by kube-scheduler, or null.
const Json* Refusal(const Json& pod) {
  const Json* conditions = Find(pod, "status", "conditions");
  if (conditions == nullptr) return nullptr;
  for (const Json& condition : conditions->get_array()) {
    if (FindString(condition, "type") == "PodScheduled" &&
        FindString(condition, "status") == "False" &&
        FindString(condition, "reason") != "SchedulingGated") {
      return &condition;
    }
  }
  return nullptr;
}

class Run {
 public:
  Run(const Flags& flags, Plane& plane, KubeLog log, Decider decider)
      : flags_(flags), plane_(plane), log_(std::move(log)), decider_(std::move(decider)) {}

  Status All() {
    NOS_RETURN_IF_ERROR(plane_.Clear());
    NOS_RETURN_IF_ERROR(plane_.Create(CommonObjects(flags_.devices)).status());
    plane_.OnPod([this](const std::string& key, const Json& pod) { NoteDecision(key, pod); });
    if (flags_.scenario >= 0) return OneCluster(flags_.scenario / flags_.pods_of_cluster());
    const auto more = [&](int index) {
      return flags_.clusters > 0 ? index < flags_.clusters : tally_.done < flags_.scenarios;
    };
    for (int i = 0; more(i); ++i) NOS_RETURN_IF_ERROR(OneCluster(i));
    return Status::Ok();
  }
  const Tally& tally() const { return tally_; }

 private:
  // The result of one attempt.
  struct Attempt {
    Json pod;  // as created
    std::vector<Json> claims;
    Picture picture;
    Opinion nos;
    Outcome kube;
    std::string disagreement, allowed;
  };

  bool devices() const { return flags_.devices.any(); }

  // kube-scheduler tries a refused pod again, which hides its first decision.
  void NoteDecision(const std::string& key, const Json& pod) {
    if (!devices() || decided_.contains(key)) return;
    if (Refusal(pod) != nullptr || !FindString(pod, "spec", "nodeName").empty()) {
      decided_[key] = pod;
    }
  }

  Status OneCluster(int index) {
    Draw draw(flags_.seed * 1'000'003 + static_cast<uint64_t>(index));
    const std::string name = fmt::format("c{}", index);
    cluster_ = devices() ? MakeDeviceCluster(draw, name, flags_.devices) : MakeCluster(draw, name);
    ++tally_.clusters;
    if (flags_.no_resizes) EndResizes(cluster_);
    NOS_RETURN_IF_ERROR(plane_.Create(cluster_.context).status());
    NOS_RETURN_IF_ERROR(plane_.Create(cluster_.claims).status());
    NOS_RETURN_IF_ERROR(plane_.Create(cluster_.device_claims).status());
    NOS_RETURN_IF_ERROR(plane_.Create(cluster_.nodes).status());
    NOS_RETURN_IF_ERROR(plane_.Create(cluster_.pods).status());
    NOS_RETURN_IF_ERROR(plane_.ReadContext());
    NOS_RETURN_IF_ERROR(AwaitView(kClusterLabel, cluster_.name, cluster_.nodes.size()));
    spoilt_ = false;
    for (int i = 0; i < flags_.pods_of_cluster() && !spoilt_; ++i) {
      const int scenario = index * flags_.pods_of_cluster() + i;
      if (i > 0) NOS_RETURN_IF_ERROR(devices() ? DisturbDevices(draw) : Disturb(draw));
      NOS_RETURN_IF_ERROR(Scenario(draw, scenario, i));
      if (scenario == flags_.scenario) break;
    }
    decided_.clear();
    return plane_.Clear();
  }

  // Changes the cluster between decisions: deletes a pod, or changes slices, a class or a node.
  Status DisturbDevices(Draw& draw) {
    NOS_ASSIGN(const Picture picture, plane_.Look());
    const auto any = [&](const char* kind) { return AnyOf(draw, picture, kind); };
    if (const Json* pod = any("Pod"); draw.Chance(0.25) && pod != nullptr) {
      return ReleaseClaims(plane_, *pod);
    }
    if (const Json* slice = any("ResourceSlice"); draw.Chance(0.25) && slice != nullptr) {
      return plane_.Patch(*slice, MakeDeviceChange(draw, *slice));
    }
    if (const Json* one = any("DeviceClass"); draw.Chance(0.06) && one != nullptr) {
      return plane_.Patch(*one, MakeDeviceChange(draw, *one));
    }
    const Json* node = any("Node");
    return draw.Chance(0.1) ? ChangeNode(draw, *node) : Status::Ok();
  }

  Status ChangeNode(Draw& draw, const Json& node) {
    const std::string mark = std::to_string(++looks_);
    NOS_RETURN_IF_ERROR(plane_.Patch(node, MakeNodeChange(draw, mark)));
    return AwaitView(kChangeLabel, mark, 1);
  }

  // Changes the cluster between decisions: deletes or relabels pods, and changes nodes.
  Status Disturb(Draw& draw) {
    NOS_ASSIGN(const Picture picture, plane_.Look());
    const auto any = [&](const char* kind) { return AnyOf(draw, picture, kind); };
    if (const Json* pod = any("Pod"); draw.Chance(0.2) && pod != nullptr) {
      NOS_RETURN_IF_ERROR(plane_.Delete(*pod));
      return plane_.Await([&] { return plane_.Pod(KeyOf(*pod)) == nullptr; }, "a pod to go");
    }
    if (const Json* pod = any("Pod"); draw.Chance(0.15) && pod != nullptr) {
      return plane_.Patch(*pod, {{"metadata", {{"labels", MakePodLabels(draw)}}}});
    }
    const Json* node = any("Node");
    return draw.Chance(0.2) ? ChangeNode(draw, *node) : Status::Ok();
  }

  // Waits until kube-scheduler's cache has exactly the nodes of this cluster, of which `matching`
  // have this label. A sentinel pod shows it: the message of its refusal has the number of nodes,
  // and all nodes with the label lack its requested resource.
  Status AwaitView(const std::string& label, const std::string& value, size_t matching) {
    const std::string all = fmt::format("0/{} nodes", cluster_.nodes.size());
    const std::string lack = fmt::format(" {} Insufficient example.com/nothing", matching);
    for (int i = 0; i < 1000; ++i) {
      const Json sentinel =
          MakeSentinel(fmt::format("{}-look-{}", cluster_.name, ++looks_), {{label, value}});
      NOS_RETURN_IF_ERROR(plane_.Create(sentinel).status());
      std::string said;
      const auto refused = [&] {
        const Json* pod = plane_.Pod(KeyOf(sentinel));
        const Json* refusal = pod == nullptr ? nullptr : Refusal(*pod);
        if (refusal != nullptr) said = FindString(*refusal, "message");
        return refusal != nullptr;
      };
      NOS_RETURN_IF_ERROR(plane_.Await(refused, "kube-scheduler to look at the nodes"));
      NOS_RETURN_IF_ERROR(plane_.Delete(sentinel));
      NOS_RETURN_IF_ERROR(
          plane_.Await([&] { return plane_.Pod(KeyOf(sentinel)) == nullptr; }, "a pod to go"));
      if (said.starts_with(all) && said.find(lack) != std::string::npos) return Status::Ok();
    }
    return {Code::kDeadline, "kube-scheduler does not see the nodes as they are"};
  }

  Status Scenario(Draw& draw, int scenario, int index) {
    Draw drawn = draw;
    for (int attempt = 0;; ++attempt) {
      draw = drawn;
      const std::string name = fmt::format("{}-p{}{}", cluster_.name, index,
                                           attempt == 0 ? "" : fmt::format("-again-{}", attempt));
      const PodObjects objects =
          devices() ? MakeClaimingPod(draw, cluster_, name) : MakePod(draw, cluster_, name);
      NOS_ASSIGN(Attempt made, devices() ? TryClaims(objects) : Try(objects));
      // kube-scheduler may have decided on a stale cache, so the pod is tried again if that repeats
      // the same question.
      const bool same_again = devices() || (made.kube.nominated.empty() && objects.claims.empty());
      if (!made.disagreement.empty() && same_again && attempt + 1 < kAttempts) {
        ++tally_.again;
        NOS_RETURN_IF_ERROR(Remove(made));
        continue;
      }
      Count(objects, made);
      const bool asked_for = scenario == flags_.scenario;
      if (!made.disagreement.empty() || flags_.verbose || asked_for) Report(scenario, made);
      return Settle(objects, made);
    }
  }

  Result<Attempt> Try(const PodObjects& objects) {
    Attempt attempt;
    NOS_ASSIGN(attempt.claims, plane_.Create(objects.claims));
    NOS_RETURN_IF_ERROR(
        plane_.Await([this] { return plane_.VolumesSettled(); }, "volumes to settle"));
    NOS_ASSIGN(attempt.picture, plane_.Look());
    NOS_ASSIGN(attempt.pod, plane_.Create(objects.pod));
    if (objects.gated) NOS_RETURN_IF_ERROR(LiftGate(attempt));
    NOS_ASSIGN(cluster::Pod pod, cluster::DecodePod(JsonSource(attempt.pod)));
    attempt.nos =
        decider_.Ask(attempt.picture, std::make_shared<const cluster::Pod>(std::move(pod)));
    NOS_ASSIGN(attempt.kube, AwaitOutcome(attempt));
    if (attempt.disagreement.empty()) {
      attempt.disagreement = Disagreement(attempt.kube, attempt.nos);
    }
    return attempt;
  }

  // The same for a pod with ResourceClaims. The gate keeps kube-scheduler from deciding before its
  // claims are made from templates, and nos has looked at them.
  Result<Attempt> TryClaims(const PodObjects& objects) {
    Attempt attempt;
    NOS_ASSIGN(attempt.claims, plane_.Create(objects.claims));
    NOS_ASSIGN(attempt.pod, plane_.Create(objects.pod));
    const std::string key = KeyOf(attempt.pod);
    // The controller may not serve a pod that also names a missing claim.
    if (!objects.held) NOS_RETURN_IF_ERROR(AwaitClaims(plane_, key));
    attempt.pod = *plane_.Pod(key);
    attempt.pod.get_object()["kind"] = "Pod";
    NOS_ASSIGN(attempt.picture, plane_.Look());
    std::erase_if(attempt.picture.pods, [&](const SharedPod& pod) { return pod->Key() == key; });
    if (objects.gated) NOS_RETURN_IF_ERROR(LiftGate(attempt));
    NOS_ASSIGN(cluster::Pod pod, cluster::DecodePod(JsonSource(attempt.pod)));
    attempt.nos = decider_.Ask(attempt.picture, std::make_shared<const cluster::Pod>(pod));
    NOS_ASSIGN(attempt.kube, objects.held ? AwaitHeld(attempt) : AwaitOutcome(attempt));
    ClaimVerdict verdict =
        CompareOnClaims(attempt.kube, attempt.nos, {pod, attempt.picture, flags_.devices});
    if (attempt.disagreement.empty()) attempt.disagreement = std::move(verdict.disagreement);
    attempt.allowed = std::move(verdict.allowed);
    return attempt;
  }

  // A pod without its claim is not queued: kube-scheduler says nothing of it. A pod that came later
  // shows that it was not decided.
  Result<Outcome> AwaitHeld(const Attempt& attempt) {
    const Json later = MakeSentinel(fmt::format("{}-look-{}", cluster_.name, ++looks_), {});
    NOS_RETURN_IF_ERROR(plane_.Create(later).status());
    const auto decided = [&] {
      return decided_.contains(KeyOf(later)) || decided_.contains(KeyOf(attempt.pod));
    };
    NOS_RETURN_IF_ERROR(plane_.Await(decided, "kube-scheduler to decide on a later pod"));
    NOS_RETURN_IF_ERROR(plane_.Delete(later));
    NOS_RETURN_IF_ERROR(
        plane_.Await([&] { return plane_.Pod(KeyOf(later)) == nullptr; }, "a pod to go"));
    if (decided_.contains(KeyOf(attempt.pod))) return AwaitOutcome(attempt);
    Outcome outcome;
    outcome.held = true;
    return outcome;
  }

  // Checks that nos holds the gated pod back too; then removes the gate.
  Status LiftGate(Attempt& attempt) {
    NOS_ASSIGN(cluster::Pod pod, cluster::DecodePod(JsonSource(attempt.pod)));
    const Opinion nos = decider_.Ask(attempt.picture, std::make_shared<const cluster::Pod>(pod));
    if (nos.gate.empty()) attempt.disagreement = "nos lets a gated pod pass";
    NOS_RETURN_IF_ERROR(plane_.Patch(attempt.pod, {{"spec", {{"schedulingGates", nullptr}}}}));
    attempt.pod.get_object()["spec"].get_object().erase("schedulingGates");
    return Status::Ok();
  }

  Result<Outcome> AwaitOutcome(const Attempt& attempt) {
    Outcome outcome;
    const std::string key = KeyOf(attempt.pod);
    const auto decided = [&] {
      const Json* pod = plane_.Pod(key);
      if (const auto first = decided_.find(key); first != decided_.end()) pod = &first->second;
      if (pod == nullptr) return false;
      outcome.node = FindString(*pod, "spec", "nodeName");
      const Json* refusal = Refusal(*pod);
      if (refusal != nullptr && outcome.node.empty()) {
        if (IsPremature(attempt, FindString(*refusal, "message"))) return false;
        outcome.reason = FindString(*refusal, "reason");
        outcome.message = FindString(*refusal, "message");
        outcome.nominated = FindString(*pod, "status", "nominatedNodeName");
        outcome.late = std::ranges::any_of(attempt.picture.pods, [&](const SharedPod& one) {
          return !outcome.nominated.empty() && one->node_name == outcome.nominated &&
                 plane_.Pod(one->Key()) == nullptr;
        });
      }
      return !outcome.node.empty() || refusal != nullptr;
    };
    NOS_RETURN_IF_ERROR(plane_.Await(decided, "kube-scheduler to decide on " + key));
    outcome.log = log_.Of(key);
    if (!outcome.nominated.empty()) NOS_RETURN_IF_ERROR(AwaitVictims(attempt, outcome));
    return outcome;
  }

  // True if kube-scheduler has not seen a claim created before the pod yet; it will retry.
  static bool IsPremature(const Attempt& attempt, std::string_view message) {
    return std::ranges::any_of(attempt.claims, [&](const Json& claim) {
      const std::string name = fmt::format("{}\"", FindString(claim, "metadata", "name"));
      const bool missing = message.find("not found") != std::string_view::npos ||
                           message.find("could not find") != std::string_view::npos;
      return missing && message.find(name) != std::string_view::npos;
    });
  }

  // Waits for the victims to end, then removes the pod: its later placement is a matter of
  // queueing, which this test does not compare.
  Status AwaitVictims(const Attempt& attempt, Outcome& outcome) {
    const auto gone = [&](const SharedPod& pod) { return plane_.Pod(pod->Key()) == nullptr; };
    const auto theirs =
        std::ranges::find(attempt.nos.candidates, outcome.nominated, &scheduling::Preemption::node);
    if (theirs != attempt.nos.candidates.end()) {
      // On a time-out the victims differ, which Disagreement() reports.
      (void)plane_.Await([&] { return std::ranges::all_of(theirs->victims, gone); }, "victims");
    }
    NOS_RETURN_IF_ERROR(Remove(attempt));
    for (const SharedPod& pod : attempt.picture.pods) {
      // kube-scheduler may have retried between its victims' ends, and preempted on another node
      // too.
      if (pod->node_name == outcome.nominated && gone(pod)) outcome.victims.push_back(pod);
    }
    return Status::Ok();
  }

  void Count(const PodObjects& objects, const Attempt& made) {
    ++tally_.done;
    tally_.gated += objects.gated ? 1 : 0;
    tally_.scored += made.kube.log.scores.empty() ? 0 : 1;
    tally_.disagreed += made.disagreement.empty() ? 0 : 1;
    if (!made.allowed.empty()) ++tally_.allowed[made.allowed];
    for (const std::string& kind : objects.kinds) {
      Tally::OfKind& of_kind = tally_.kinds[kind];
      ++(made.kube.held             ? of_kind.held
         : made.kube.reason.empty() ? of_kind.bound
                                    : of_kind.refused);
      of_kind.disagreed += made.disagreement.empty() ? 0 : 1;
    }
    if (made.kube.held) {
      ++tally_.held;
    } else if (!made.kube.nominated.empty()) {
      ++tally_.preempted;
    } else {
      ++(made.kube.reason.empty() ? tally_.bound : tally_.refused);
    }
  }

  Status Remove(const Attempt& made) {
    if (devices()) {
      NOS_RETURN_IF_ERROR(ReleaseClaims(plane_, made.pod));
      for (const Json& claim : made.claims) NOS_RETURN_IF_ERROR(plane_.Delete(claim));
      const auto gone = [&](const Json& claim) {
        return plane_.DeviceClaim(KeyOf(claim)) == nullptr;
      };
      return plane_.Await([&] { return std::ranges::all_of(made.claims, gone); }, "claims to go");
    }
    NOS_RETURN_IF_ERROR(plane_.Delete(made.pod));
    for (const Json& claim : made.claims) NOS_RETURN_IF_ERROR(plane_.Delete(claim));
    return plane_.Await([&] { return plane_.Pod(KeyOf(made.pod)) == nullptr; }, "a pod to go");
  }

  Status Settle(const PodObjects& objects, const Attempt& made) {
    // kube-scheduler may be binding its claims, and consider the pod running for a second.
    spoilt_ = !made.kube.nominated.empty() && !objects.claims.empty();
    if (made.kube.node.empty()) return Remove(made);
    if (devices()) return AwaitReservations(plane_, KeyOf(made.pod));
    const bool chosen_by_chance = made.nos.feasible > 1 && !made.nos.first_best.empty() &&
                                  made.nos.first_best != made.kube.node;
    Json running = made.pod;
    if (chosen_by_chance && objects.claims.empty()) {
      NOS_RETURN_IF_ERROR(Remove(made));
      running = objects.pod;
      JsonObject& spec = running.get_object()["spec"].get_object();
      spec["nodeName"] = made.nos.first_best;
      spec.erase("schedulingGates");
      NOS_RETURN_IF_ERROR(plane_.Create(running).status());
    }
    return plane_.Patch(running, {{"status", {{"startTime", StartTime(2000 + tally_.done)}}}},
                        "status");
  }

  void Report(int scenario, const Attempt& made) {
    fmt::print("{} scenario {} (--seed {}): {}{}\n", made.disagreement.empty() ? "ok" : "DISAGREE",
               scenario, flags_.seed, made.disagreement, made.allowed);
    if (!flags_.verbose && flags_.scenario < 0 && tally_.disagreed > 20) return;
    fmt::print(" kube-scheduler:\n{} nos:\n{}", Describe(made.kube), Describe(made.nos));
    if (flags_.dump.empty()) return;
    const std::string path =
        fmt::format("{}/seed-{}-scenario-{}.json", flags_.dump, flags_.seed, scenario);
    const Json dump = {{"pod", made.pod}, {"objects", made.picture.objects}};
    std::ofstream(path) << WriteJsonPretty(dump);
    fmt::print(" --decide {}\n", path);
  }

  const Flags& flags_;
  Plane& plane_;
  KubeLog log_;
  Decider decider_;
  ClusterObjects cluster_;
  int looks_ = 0;
  bool spoilt_ = false;                  // kube-scheduler's cache may differ from the API
  std::map<std::string, Json> decided_;  // with devices: pods as first decided
  Tally tally_;
};

Status DecideDump(Decider& decider, const std::string& path) {
  NOS_ASSIGN(const std::string text, ReadFile(path));
  NOS_ASSIGN(const Json dump, ParseJson(text));
  const Json* pod = Find(dump, "pod");
  const Json* objects = Find(dump, "objects");
  if (pod == nullptr || objects == nullptr) return Invalid(path + ": no dump");
  NOS_ASSIGN(const Picture picture, PictureOf(objects->get_array()));
  NOS_ASSIGN(cluster::Pod decoded, cluster::DecodePod(JsonSource(*pod)));
  fmt::print("{}", Describe(decider.Ask(picture, std::make_shared<const cluster::Pod>(decoded))));
  return Status::Ok();
}

void Print(const Tally& tally) {
  fmt::print("{} clusters, {} pods: {} bound, {} refused, {} held back\n", tally.clusters,
             tally.done, tally.bound, tally.refused, tally.held);
  for (const auto& [kind, of_kind] : tally.kinds) {
    fmt::print("  pods with {} claims: {} bound, {} refused, {} held back, {} disagreements\n",
               kind, of_kind.bound, of_kind.refused, of_kind.held, of_kind.disagreed);
  }
  for (const auto& [what, count] : tally.allowed) fmt::print("  explained: {}: {}\n", what, count);
}

Result<int> Start(const Flags& flags) {
  NOS_ASSIGN(Decider decider, Decider::Of(flags.config));
  if (flags.devices.any()) decider.FollowDevices();
  if (!flags.decide.empty()) {
    NOS_RETURN_IF_ERROR(DecideDump(decider, flags.decide));
    return 0;
  }
  NOS_ASSIGN(const std::unique_ptr<Plane> plane, Plane::Connect(flags.plane, flags.devices));
  Run run(flags, *plane, KubeLog(flags.plane + "/kube-scheduler.log"), std::move(decider));
  fmt::print("seed {}, {} {}\n", flags.seed, flags.clusters > 0 ? flags.clusters : flags.scenarios,
             flags.clusters > 0 ? "clusters" : "scenarios");
  const Status status = run.All();
  const Tally& t = run.tally();
  if (flags.devices.any()) Print(t);
  NOS_RETURN_IF_ERROR(status);
  fmt::print(
      "{} bound ({} with scores of several nodes), {} refused, {} by preemption; {} gated first, "
      "{} asked again, {} disagreements\n",
      t.bound, t.scored, t.refused, t.preempted, t.gated, t.again, t.disagreed);
  return t.disagreed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace nos::differential

int main(int argc, char** argv) {
  nos::differential::Flags flags;
  CLI::App app("Differential test of nos and kube-scheduler");
  app.add_option("--config", flags.config, "kube-scheduler.yaml")->required();
  app.add_option("--plane", flags.plane, "folder of the control plane");
  app.add_option("--seed", flags.seed);
  app.add_option("--scenarios", flags.scenarios);
  app.add_option("--scenario", flags.scenario, "only this one, with what its cluster had before");
  app.add_option("--clusters", flags.clusters, "instead of --scenarios")->take_last();
  app.add_option("--devices", flags.devices.minor, "N: with the devices of Kubernetes 1.N");
  app.add_option("--dump", flags.dump, "folder for disagreements");
  app.add_option("--decide", flags.decide, "a dump that nos is to look at");
  app.add_flag("--no-resizes", flags.no_resizes, "no running pod is being resized");
  app.add_flag("-v,--verbose", flags.verbose);
  CLI11_PARSE(app, argc, argv);
  const auto code = nos::differential::Start(flags);
  if (!code.ok()) std::cerr << code.status().ToString() << "\n";
  return code.ok() ? *code : 2;
}
