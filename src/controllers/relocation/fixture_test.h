// Three nodes, pods of one controller, and what kubelets and controllers do during relocations.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "controllers/relocation/placeholder.h"
#include "controllers/relocations.h"
#include "kube/testing/fake_api.h"

namespace nos::controllers {

struct Maker {
  std::string kind = "ReplicaSet", uid = "rs-1";
};

struct RelocationWorld {
  RelocationWorld() {
    for (const char* name : {"gpu-1", "gpu-2", "gpu-3"}) PutNode(name);
    config.image = "pause";
    Restart();
  }

  void PutNode(const std::string& name, bool unschedulable = false) {
    Json node = {{"kind", "Node"}, {"metadata", {{"name", name}, {"uid", "u-" + name}}}};
    if (unschedulable) MakeObject(node, "spec")["unschedulable"] = true;
    api.Put(std::move(node));
  }

  // Creates "ml/<name>". Empty node: the pod is pending.
  void PutPod(const std::string& name, const std::string& node, const Maker& maker = {},
              const std::string& uid = "") {
    Json pod = {
        {"kind", "Pod"},
        {"metadata",
         {{"namespace", "ml"},
          {"name", name},
          {"uid", uid.empty() ? "u-" + name : uid},
          {"labels", {{"app", "web"}}},
          {"creationTimestamp", FormatTime(clock.Now())},
          {"ownerReferences", JsonArray{JsonObject{{"apiVersion", "apps/v1"},
                                                   {"kind", maker.kind},
                                                   {"name", "web"},
                                                   {"uid", maker.uid},
                                                   {"controller", true}}}}}},
        {"spec",
         {{"containers", JsonArray{JsonObject{{"name", "main"},
                                              {"resources", {{"requests", {{"cpu", "1"}}}}}}}}}},
        {"status", {{"phase", node.empty() ? "Pending" : "Running"}}}};
    if (!node.empty()) MakeObject(pod, "spec")["nodeName"] = node;
    api.Put(std::move(pod));
  }

  // Starts a relocation of the pods "ml/<name>" to gpu-2.
  Status Start(const std::vector<std::string>& names, const std::string& id = "r-1",
               const std::string& for_pod = "") {
    Pump();
    Relocation relocation;
    relocation.id = id;
    relocation.for_pod = for_pod;
    if (for_pod.empty()) {
      relocation.node = "gpu-1";
      relocation.pool = "a100";
    }
    for (const std::string& name : names) {
      relocation.moves.push_back({pods.Get("ml/" + name), "gpu-1", "gpu-2", {}});
    }
    const Status started = relocations->Start(relocation, view, client, clock.Now());
    TakeNotes();
    return started;
  }

  void Pump() {
    pods.Pump(client, clock.Now());
    nodes.Pump(client, clock.Now());
  }
  // Steps with stale caches.
  void StepStale() {
    last = relocations->Step(view, client, clock);
    TakeNotes();
  }
  void Step() {
    Pump();
    StepStale();
  }
  void StepAfter(Duration time) {
    clock.Advance(time);
    Step();
  }
  // Simulates a crash.
  void Restart() { relocations = std::make_unique<Relocations>(config); }

  // Sets the phase of a placeholder on its node, as its kubelet would.
  void SetPlace(int number, const std::string& phase, const std::string& id = "r-1") {
    Json pod = *api.Find("pods", "nos/" + NameOfPlaceholder(id, number));
    const auto what =
        ReadPlaceFor(FindString(pod, "metadata", "annotations", std::string(kPlaceFor)));
    MakeObject(pod, "spec")["nodeName"] = what->to;
    MakeObject(pod, "status")["phase"] = phase;
    MakeObject(pod, "status")["reason"] = phase == "Failed" ? "UnexpectedAdmissionError" : "";
    api.Put(std::move(pod));
  }
  void RunPlaces(int count) {
    for (int i = 0; i < count; ++i) SetPlace(i, "Running");
  }
  // Stops before the step that evicts.
  void StartAndHold(const std::vector<std::string>& names, const std::string& for_pod = "") {
    ASSERT_TRUE(Start(names, "r-1", for_pod).ok());
    Step();
    RunPlaces(static_cast<int>(names.size()));
    Step();
    ASSERT_EQ(Evictions(), 0);
  }

  // "0 1": the numbers of existing placeholders.
  std::string Places() const {
    std::string numbers;
    for (const Json& pod : api.All("pods")) {
      if (FindString(pod, "metadata", "namespace") != "nos") continue;
      const std::string_view name = FindString(pod, "metadata", "name");
      numbers += (numbers.empty() ? "" : " ") + std::string(name.substr(name.rfind('-') + 1));
    }
    return numbers;
  }
  bool Has(const std::string& pod) const { return api.Find("pods", "ml/" + pod) != nullptr; }
  // The number of eviction requests, whatever was answered.
  int Evictions() const {
    return static_cast<int>(std::ranges::count_if(api.writes, [](const kube::ApiRequest& request) {
      return request.path.ends_with("/eviction");
    }));
  }
  cluster::Node Node(const std::string& name = "gpu-1") const {
    return cluster::DecodeNode(*api.Find("nodes", name)).value();
  }
  Removal Mark() const { return RemovalOf(Node()).value_or(Removal{}); }
  // No trace of a relocation is left on the node.
  bool IsFree(const std::string& name = "gpu-1") const {
    const cluster::Node node = Node(name);
    return !node.unschedulable && !node.meta.annotations.contains(kRemoval);
  }
  bool IsEmptied() const {
    return Node().unschedulable && Mark().state == Removal::State::kEmptied;
  }
  int CountNotes(RelocationNote::Kind kind, const std::string& part_of_why = "") const {
    return static_cast<int>(std::ranges::count_if(notes, [&](const RelocationNote& note) {
      return note.kind == kind && note.why.find(part_of_why) != std::string::npos;
    }));
  }
  void TakeNotes() { std::ranges::move(relocations->TakeNotes(), std::back_inserter(notes)); }

  ManualClock clock{ParseTime("2026-01-01T00:00:00Z").value()};
  kube::FakeApi api;
  kube::Client client{api};
  kube::Cache<cluster::Pod> pods{kube::kPods, cluster::ReadPod};
  kube::Cache<cluster::Node> nodes{kube::kNodes, cluster::ReadNode};
  reconcile::Listers view{pods, nodes};
  RelocationConfig config;
  std::unique_ptr<Relocations> relocations;
  std::vector<RelocationNote> notes;
  reconcile::ReconcileResult last;
};

}  // namespace nos::controllers
