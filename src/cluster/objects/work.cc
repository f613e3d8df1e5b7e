#include "cluster/work.h"

#include <algorithm>

#include "cluster/fields.h"
#include "cluster/read_parts.h"

namespace nos::cluster {
namespace {

// Reads an object with metadata; `spec` and `status` read its other members.
template <typename T, typename Spec, typename Status_>
Status ReadObject(JsonSource json, T& to, Spec spec, Status_ status) {
  to = T();
  NOS_RETURN_IF_ERROR(ReadFields(json, [&](Field& root) {
    root.Members(At("metadata", to.meta, ReadMeta), At("spec", spec), At("status", status));
  }));
  return to.meta.name.empty() ? Invalid("metadata.name: is missing") : Status::Ok();
}

auto Template(Pod& to) {
  return At("template", [&to](Field& from) {
    from.Members(At("metadata", to.meta, ReadMeta), At("spec", to, ReadPodSpec));
  });
}

void ReadPodSet(Field& from, PodTemplate& to) {
  from.Members(At("count", to.count), Template(to.pod));
}

}  // namespace

Status ReadJob(JsonSource json, Job& to) {
  const Status read = ReadObject(
      json, to,
      [&](Field& spec) {
        spec.Members(At("suspend", to.suspended), At("parallelism", to.parallelism),
                     At("completions", to.completions), Template(to.pods.pod));
      },
      [&](Field& status) {
        status.Members(At("active", to.active), At("succeeded", to.succeeded),
                       At("failed", to.failed), At("startTime", to.started),
                       At("completionTime", to.completed),
                       At("conditions", to.conditions, ReadCondition));
      });
  to.pods.count = to.parallelism.value_or(1);
  return read;
}

Status ReadKueueWorkload(JsonSource json, KueueWorkload& to) {
  return ReadObject(
      json, to,
      [&](Field& spec) {
        spec.Members(At("queueName", to.queue), At("podSets", to.pods, ReadPodSet));
      },
      [&](Field& status) {
        status.Members(
            At("admission",
               [&](Field& admission) { admission.Members(At("clusterQueue", to.cluster_queue)); }),
            At("conditions", to.conditions, ReadCondition));
      });
}

Status ReadKueueQueue(JsonSource json, KueueQueue& to) {
  return ReadObject(
      json, to, [&](Field& spec) { spec.Members(At("clusterQueue", to.cluster_queue)); },
      [&](Field& status) {
        status.Members(At("pendingWorkloads", to.pending), At("reservingWorkloads", to.reserving),
                       At("admittedWorkloads", to.admitted),
                       At("conditions", to.conditions, ReadCondition));
      });
}

Status ReadEvent(JsonSource json, KubernetesEvent& to) {
  to = KubernetesEvent();
  Time event_time{}, last{}, observed{};
  std::string component;
  int32_t observations = 0;
  NOS_RETURN_IF_ERROR(ReadFields(json, [&](Field& root) {
    root.Members(At("metadata", to.meta, ReadMeta), At("type", to.type), At("reason", to.reason),
                 At("message", to.message), At("count", to.count), At("lastTimestamp", last),
                 At("eventTime", event_time), At("reportingComponent", to.source),
                 At("source", [&](Field& source) { source.Members(At("component", component)); }),
                 At("series",
                    [&](Field& series) {
                      series.Members(At("count", observations), At("lastObservedTime", observed));
                    }),
                 At("involvedObject", [&](Field& about) {
                   about.Members(At("kind", to.kind), At("namespace", to.ns), At("name", to.name));
                 }));
  }));
  to.last = std::max({to.meta.created, event_time, last, observed});
  to.count = std::max({to.count, observations, 1});
  if (to.source.empty()) to.source = std::move(component);
  return to.meta.name.empty() ? Invalid("metadata.name: is missing") : Status::Ok();
}

}  // namespace nos::cluster
