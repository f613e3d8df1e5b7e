#include "cluster/work.h"

#include <gtest/gtest.h>

#include "codec/yaml.h"

namespace nos::cluster {
namespace {

template <typename T>
Status Read(const std::string& yaml, Status (*read)(JsonSource, T&), T& to) {
  return read(ParseYaml(yaml)->front(), to);
}

TEST(Work, ReadsSpecAndStatusOfJobs) {
  Job job;
  ASSERT_TRUE(Read(R"(
metadata: {namespace: a, name: train}
spec:
  suspend: true
  completions: 5
  template:
    metadata: {labels: {app: x}}
    spec: {containers: [{name: m, resources: {limits: {nvidia.com/gpu: 2}}}]}
status:
  active: 1
  succeeded: 2
  failed: 3
  startTime: "2026-01-01T00:00:00Z"
  conditions: [{type: Suspended, status: "True", message: why}])",
                   ReadJob, job)
                  .ok());
  EXPECT_TRUE(job.suspended);
  EXPECT_EQ(job.completions, 5);
  EXPECT_EQ(job.pods.count, 1) << "without a parallelism";
  EXPECT_EQ(PodRequests(job.pods.pod).at("nvidia.com/gpu").Value(), 2);
  EXPECT_EQ(job.active * 100 + job.succeeded * 10 + job.failed, 123);
  EXPECT_TRUE(job.started.has_value());
  EXPECT_FALSE(job.completed.has_value());
  EXPECT_EQ(job.conditions.at(0).message, "why");
  EXPECT_EQ(Read("metadata: {name: j}\nspec: {parallelism: many}", ReadJob, job).message(),
            "spec.parallelism: must be a whole number, not a string");
  EXPECT_FALSE(Read("spec: {}", ReadJob, job).ok()) << "it has no name";
}

TEST(Work, ReadsEventsOfBothApiGroups) {
  KubernetesEvent event;
  ASSERT_TRUE(Read(R"(
metadata: {namespace: a, name: p.1, uid: u, creationTimestamp: "2026-01-01T00:00:00Z"}
involvedObject: {kind: Pod, namespace: a, name: p}
type: Warning
reason: BackOff
message: again
count: 7
firstTimestamp: "2026-01-01T00:00:00Z"
lastTimestamp: "2026-01-01T00:10:00Z"
source: {component: kubelet}
reportingComponent: "")",
                   ReadEvent, event)
                  .ok());
  EXPECT_EQ(event.kind + "/" + event.ns + "/" + event.name, "Pod/a/p");
  EXPECT_EQ(event.count, 7);
  EXPECT_EQ(event.source, "kubelet");
  EXPECT_EQ(FormatTime(event.last), "2026-01-01T00:10:00Z");
  ASSERT_TRUE(Read(R"(
metadata: {namespace: a, name: p.2, creationTimestamp: "2026-01-01T00:00:00Z"}
involvedObject: {kind: Pod, namespace: a, name: p}
eventTime: "2026-01-01T00:00:00.5Z"
lastTimestamp: null
reportingComponent: default-scheduler
series: {count: 3, lastObservedTime: "2026-01-01T01:00:00.25Z"})",
                   ReadEvent, event)
                  .ok());
  EXPECT_EQ(event.count, 3);
  EXPECT_EQ(event.source, "default-scheduler");
  EXPECT_EQ(FormatTime(event.last), "2026-01-01T01:00:00Z");
}

}  // namespace
}  // namespace nos::cluster
