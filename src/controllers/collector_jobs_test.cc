#include "controllers/collector_jobs.h"

#include <gtest/gtest.h>

namespace nos::controllers {
namespace {

using std::chrono::seconds;

cluster::Pod PodOf(const std::string& name, const std::string& kind, const std::string& owner) {
  cluster::Pod pod;
  pod.meta.ns = "team";
  pod.meta.name = name;
  pod.meta.uid = "uid-" + name;
  pod.meta.created = Time(seconds(100));
  pod.phase = "Pending";
  if (!kind.empty()) {
    cluster::OwnerReference reference;
    reference.kind = kind;
    reference.name = owner;
    reference.controller = true;
    pod.meta.owners.push_back(reference);
  }
  return pod;
}

TEST(JobOf, IsWhoeverMadeThePodInTheEnd) {
  EXPECT_EQ(JobOf(PodOf("p", "Job", "train")), (JobName{"Job", "train"}));
  EXPECT_FALSE(JobOf(PodOf("p", "", "")));
  EXPECT_FALSE(JobOf(PodOf("p", "DaemonSet", "agent")));
  cluster::Pod pod = PodOf("p", "ReplicaSet", "web-5d4f");
  EXPECT_EQ(JobOf(pod), (JobName{"ReplicaSet", "web-5d4f"}));
  pod.meta.labels["pod-template-hash"] = "5d4f";
  EXPECT_EQ(JobOf(pod), (JobName{"Deployment", "web"}));
  pod = PodOf("p", "RayCluster", "tune-raycluster-x7");
  pod.meta.labels["ray.io/originated-from-crd"] = "RayJob";
  pod.meta.labels["ray.io/originated-from-cr-name"] = "tune";
  EXPECT_EQ(JobOf(pod), (JobName{"RayJob", "tune"}));
  pod = PodOf("p", "Job", "set-workers-0");
  pod.meta.labels["jobset.sigs.k8s.io/jobset-name"] = "set";
  EXPECT_EQ(JobOf(pod), (JobName{"JobSet", "set"}));
}

TEST(JobTally, TellsAJobWhenItsPodsChange) {
  JobTally jobs;
  cluster::Pod first = PodOf("first", "Job", "train"), second = PodOf("second", "Job", "train");
  second.meta.created = Time(seconds(90));
  jobs.Put(first, Time());
  jobs.Put(second, Time());
  jobs.Put(PodOf("alone", "", ""), Time());
  auto records = jobs.TakeChanges();
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(WriteJson(records[0]),
            R"({"kind":"job","id":"team/Job/train","namespace":"team","type":"Job","name":"train",)"
            R"("queue":"","pods":{"pending":2},"completions":0,"created":90000,"started":0,)"
            R"("finished":0})");
  jobs.Put(first, Time());
  EXPECT_TRUE(jobs.TakeChanges().empty()) << "nothing that shows has changed";
  first.phase = "Succeeded";
  first.started = Time(seconds(110));
  jobs.Put(first, Time(seconds(150)));
  records = jobs.TakeChanges();
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(WriteJson(*records[0].if_contains("pods")), R"({"pending":1,"succeeded":1})");
  EXPECT_EQ(*records[0].if_contains("completions"), Json(1));
  EXPECT_EQ(*records[0].if_contains("started"), Json(110'000));
  EXPECT_EQ(*records[0].if_contains("finished"), Json(0)) << "one still waits";
  second.phase = "Failed";
  jobs.Put(second, Time(seconds(170)));
  EXPECT_EQ(*jobs.TakeChanges()[0].if_contains("finished"), Json(170'000));
  jobs.Remove(first.meta.uid);
  jobs.Remove(second.meta.uid);
  EXPECT_TRUE(jobs.Ids("job").empty());
  records = jobs.TakeChanges();
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(WriteJson(records[0]), R"({"kind":"removed","what":"job","id":"team/Job/train"})");
}

TEST(JobTally, TellsAQueueByWhoIsInIt) {
  JobTally jobs;
  cluster::Pod pod = PodOf("first", "Job", "train");
  pod.meta.labels["kueue.x-k8s.io/queue-name"] = "gpus";
  jobs.Put(pod, Time());
  pod.meta.uid = "uid-second";
  pod.scheduling_gates = {"kueue.x-k8s.io/admission"};
  jobs.Put(pod, Time());
  const auto records = jobs.TakeChanges();
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(*records[0].if_contains("queue"), Json("gpus"));
  EXPECT_EQ(WriteJson(records[1]),
            R"({"kind":"queue","id":"LocalQueue/team/gpus","namespace":"team","type":"LocalQueue",)"
            R"("name":"gpus","jobs":1,"pods":{"waiting":1,"admitted":1}})");
  EXPECT_EQ(WriteJson(jobs.Ids("queue")), R"(["LocalQueue/team/gpus"])");
}

}  // namespace
}  // namespace nos::controllers
