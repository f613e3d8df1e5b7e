// Which slice serves a need: the cheapest that meets it, over all modes and models there are.
//
//   const NeedAnswer answer = AnswerNeed(pod, snapshot, frameworks, options);
//   if (answer.choice) pod = WithSlice(pod, answer);
//
// A slice costs what nobody else can have of its GPU, in GiB of that GPU's memory: the larger of
// its parts of memory and, where they are its own (MIG), of compute slices. Pure.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cluster/need.h"
#include "cluster/snapshot.h"
#include "planning/planner.h"

namespace nos::planning {

struct SliceKind {
  std::string resource;  // "nvidia.com/mig-2g.10gb"
  double cost = 0;       // GiB
  std::string model;     // where it costs that
};

// Of the GPUs that nos divides on nodes that the pod's own selectors allow, the cheapest first.
// Every resource once; none that some of these GPUs have under the same name with less than the
// need, for nothing keeps the pod away from them. MPS shares only for pods with the host's IPC,
// without which they are of no use.
std::vector<SliceKind> SlicesFor(const cluster::Need& need, const cluster::Pod& pod,
                                 const cluster::ClusterSnapshot& snapshot);

struct SliceChoice {
  std::string resource;
  std::string node;                                  // that has room for it now; empty: none has
  std::vector<cluster::PromisedInstance> instances;  // that it would get there
  std::vector<std::string> passed_over;              // cheaper ones that have no room now

  std::string Reason() const;  // a sentence
};

// What becomes of a pod that asks by need, if it does.
struct NeedAnswer {
  std::string refusal;   // it cannot be: why
  bool unknown = false;  // there was no time to find out
  std::string warning;   // its need is passed over: why
  size_t container = 0;
  // The first kind that finds room now, be it by cutting; else the cheapest.
  std::optional<SliceChoice> choice;
};
// `full`: for whom there was no room (scheduling::KindOf, with the slice); to be kept only while
// room in the snapshot grows less. Null: nobody remembers.
NeedAnswer AnswerNeed(const cluster::Pod& pod, const cluster::ClusterSnapshot& snapshot,
                      const scheduling::FrameworkChoice& frameworks, const PlanOptions& options,
                      std::set<std::string>* full = nullptr);

// The pod as if it asked for that by name, and, where there is room, with what it would get
// promised. As it is when nothing was chosen.
cluster::Pod WithSlice(cluster::Pod pod, const NeedAnswer& answer);

}  // namespace nos::planning
