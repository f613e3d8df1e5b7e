#include "controllers/collector/jobs.h"

#include <gtest/gtest.h>

#include "codec/yaml.h"

namespace nos::controllers {
namespace {

using std::chrono::seconds;

template <typename T>
T Read(const std::string& yaml, Status (*read)(JsonSource, T&)) {
  T object;
  const Status status = read(ParseYaml(yaml)->front(), object);
  EXPECT_TRUE(status.ok()) << status.message();
  return object;
}

cluster::Job JobFrom(const std::string& more, const std::string& name = "train") {
  return Read("metadata: {namespace: team, name: " + name +
                  ", creationTimestamp: '1970-01-01T00:01:40Z'}\n" + more,
              cluster::ReadJob);
}

const std::string kTemplate =
    "template: {spec: {containers: [{name: m, resources: {limits: {nvidia.com/mig-1g.5gb: 2}}}]}}";

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

TEST(JobOf, IsTopmostOwnerOfPod) {
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

TEST(JobTally, ReportsJobWhenItsPodsChange) {
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
            R"("queue":"","state":"pending","why":"","pods":{"pending":2},"completions":0,)"
            R"("created":90000,"started":0,"finished":0})");
  jobs.Put(first, Time());
  EXPECT_TRUE(jobs.TakeChanges().empty()) << "no field of the record has changed";
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

TEST(JobTally, ReportsQueueWithItsJobsAndPods) {
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

TEST(JobTally, ReportsJobWithoutPods) {
  JobTally jobs;
  EXPECT_FALSE(jobs.Put(JobFrom("spec: {parallelism: 3}"))) << "it requests no GPU";
  ASSERT_TRUE(jobs.Put(
      JobFrom("spec: {suspend: true, parallelism: 3, completions: 9, " + kTemplate + "}")));
  auto records = jobs.TakeChanges();
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(WriteJson(records[0]),
            R"({"kind":"job","id":"team/Job/train","namespace":"team","type":"Job","name":"train",)"
            R"("queue":"","state":"suspended","why":"","pods":{},"completions":0,)"
            R"("created":100000,"started":0,"finished":0,"wanted":9,"parallelism":3,"active":0,)"
            R"("failed":0,"suspended":true,"requests":{"nvidia.com/mig-1g.5gb":6E0}})");
  EXPECT_EQ(WriteJson(jobs.Ids("job")), R"(["team/Job/train"])");

  jobs.Put(PodOf("first", "Job", "train"), Time());
  ASSERT_TRUE(jobs.Put(JobFrom(
      "spec: {parallelism: 3, completions: 9, " + kTemplate +
      "}\nstatus: {active: 1, succeeded: 4, failed: 1, startTime: '1970-01-01T00:02:00Z'}")));
  records = jobs.TakeChanges();
  ASSERT_EQ(records.size(), 1U) << "one record for pods and objects";
  EXPECT_EQ(*records[0].if_contains("completions"), Json(4)) << "deleted pods count, too";
  EXPECT_EQ(*records[0].if_contains("started"), Json(120'000));
  EXPECT_EQ(WriteJson(*records[0].if_contains("pods")), R"({"pending":1})");

  jobs.Remove("uid-first");
  ASSERT_TRUE(jobs.Put(JobFrom("spec: {" + kTemplate +
                               "}\nstatus: {failed: 7, conditions: [{type: Failed, status: 'True', "
                               "reason: BackoffLimitExceeded, message: too often, "
                               "lastTransitionTime: '1970-01-01T00:03:00Z'}]}")));
  records = jobs.TakeChanges();
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(*records[0].if_contains("state"), Json("failed"));
  EXPECT_EQ(*records[0].if_contains("why"), Json("too often"));
  EXPECT_EQ(*records[0].if_contains("finished"), Json(180'000));
  jobs.RemovePart("Job", "team", "train");
  EXPECT_EQ(WriteJson(jobs.TakeChanges()[0]),
            R"({"kind":"removed","what":"job","id":"team/Job/train"})");
}

TEST(JobTally, ReportsWhyJobCannotCreatePods) {
  JobTally jobs;
  EXPECT_FALSE(jobs.SetTrouble("team", "train", "forbidden")) << "no such Job";
  const cluster::Job job = JobFrom("spec: {" + kTemplate + "}");
  jobs.Put(job);
  EXPECT_TRUE(jobs.SetTrouble("team", "train", "exceeded quota: " + std::string(5000, 'x')));
  auto records = jobs.TakeChanges();
  EXPECT_EQ(*records[0].if_contains("state"), Json("pending"));
  EXPECT_TRUE(records[0].if_contains("why")->as_string().starts_with("exceeded quota: x"));
  EXPECT_LE(records[0].if_contains("why")->as_string().size(), 1000U);
  jobs.Put(job);
  EXPECT_TRUE(jobs.TakeChanges().empty()) << "it is remembered";
  jobs.Put(PodOf("first", "Job", "train"), Time());
  EXPECT_EQ(*jobs.TakeChanges()[0].if_contains("why"), Json("")) << "pods exist now";
}

TEST(JobTally, CountsTheJobsOfAJobSetAsOne) {
  JobTally jobs;
  for (const std::string name : {"set-a-0", "set-b-0"}) {
    cluster::Job job = JobFrom("spec: {suspend: true, " + kTemplate + "}", name);
    job.meta.labels["jobset.sigs.k8s.io/jobset-name"] = "set";
    jobs.Put(job);
  }
  auto records = jobs.TakeChanges();
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(*records[0].if_contains("id"), Json("team/JobSet/set"));
  EXPECT_EQ(*records[0].if_contains("wanted"), Json(2));
  EXPECT_EQ(*records[0].if_contains("suspended"), Json(true));
  cluster::Job job = JobFrom("spec: {" + kTemplate + "}", "set-b-0");
  job.meta.labels["jobset.sigs.k8s.io/jobset-name"] = "set";
  jobs.Put(job);
  EXPECT_EQ(*jobs.TakeChanges()[0].if_contains("suspended"), Json(false)) << "one runs";
}

cluster::KueueWorkload WorkloadFrom(const std::string& owner, const std::string& conditions) {
  return Read("metadata: {namespace: team, name: w, ownerReferences: [{controller: true, " + owner +
                  "}]}\nspec: {queueName: gpus, podSets: [{count: 4, " + kTemplate +
                  "}]}\nstatus: {admission: {clusterQueue: all}, conditions: [" + conditions + "]}",
              cluster::ReadKueueWorkload);
}

TEST(JobTally, ReportsKueueAdmissionOfJob) {
  JobTally jobs;
  EXPECT_FALSE(jobs.Put(WorkloadFrom("kind: Pod, name: p", ""))) << "of a pod alone";
  ASSERT_TRUE(jobs.Put(
      WorkloadFrom("kind: PyTorchJob, name: tune",
                   "{type: QuotaReserved, status: 'False', reason: Pending, message: no room}")));
  auto records = jobs.TakeChanges();
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(WriteJson(records[0]),
            R"({"kind":"job","id":"team/PyTorchJob/tune","namespace":"team","type":"PyTorchJob",)"
            R"("name":"tune","queue":"gpus","state":"queued","why":"no room","pods":{},)"
            R"("completions":0,"created":0,"started":0,"finished":0,)"
            R"("admission":{"state":"pending","cluster_queue":"all","reason":"Pending",)"
            R"("message":"no room","at":0},"requests":{"nvidia.com/mig-1g.5gb":8E0}})");
  const auto state = [&](const std::string& conditions) {
    jobs.Put(WorkloadFrom("kind: PyTorchJob, name: tune", conditions));
    records = jobs.TakeChanges();
    return WriteJson(*records[0].if_contains("state")) +
           WriteJson(*records[0].if_contains("admission")->get_object().if_contains("state"));
  };
  const std::string reserved = "{type: QuotaReserved, status: 'True', message: r}";
  const std::string admitted = ", {type: Admitted, status: 'True', message: a}";
  EXPECT_EQ(state(reserved), R"("queued""reserved")");
  EXPECT_EQ(state(reserved + admitted), R"("pending""admitted")") << "its pods do not exist yet";
  EXPECT_EQ(state(reserved + admitted + ", {type: Evicted, status: 'True', message: Preempted}"),
            R"("queued""evicted")");
  EXPECT_EQ(*records[0].if_contains("why"), Json("Preempted"));
  EXPECT_EQ(state("{type: Finished, status: 'True', reason: Succeeded}"),
            R"("succeeded""finished")");
}

TEST(JobTally, ReportsStatusOfKueueQueues) {
  JobTally jobs;
  jobs.Put(
      Read("metadata: {namespace: team, name: gpus}\nspec: {clusterQueue: all}\n"
           "status: {pendingWorkloads: 3, reservingWorkloads: 2, admittedWorkloads: 1}",
           cluster::ReadKueueQueue));
  jobs.Put(
      Read("metadata: {name: all}\nstatus: {conditions: [{type: Active, status: 'False', "
           "reason: FlavorNotFound, message: no flavor}]}",
           cluster::ReadKueueQueue));
  const auto records = jobs.TakeChanges();
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(WriteJson(records[0]),
            R"({"kind":"queue","id":"ClusterQueue/all","namespace":"","type":"ClusterQueue",)"
            R"("name":"all","jobs":0,"pods":{"waiting":0,"admitted":0},)"
            R"("workloads":{"pending":0,"reserving":0,"admitted":0},"active":false,)"
            R"("why":"no flavor"})");
  EXPECT_EQ(WriteJson(records[1]),
            R"({"kind":"queue","id":"LocalQueue/team/gpus","namespace":"team","type":"LocalQueue",)"
            R"("name":"gpus","jobs":0,"pods":{"waiting":0,"admitted":0},)"
            R"("workloads":{"pending":3,"reserving":2,"admitted":1},"active":true,"why":"",)"
            R"("cluster_queue":"all"})");
}

TEST(JobTally, RunningJobsReplaceEndedOnesWhenFull) {
  JobTally jobs;
  const auto job = [](size_t number, bool ended) {
    return JobFrom("spec: {" + kTemplate + "}\nstatus: {conditions: [{type: Complete, status: '" +
                       (ended ? "True" : "False") +
                       "', lastTransitionTime: '1970-01-02T00:00:00Z'}]}",
                   "j" + std::to_string(number));
  };
  cluster::Job one = job(0, true);
  for (size_t i = 0; i < JobTally::kMaxParts; ++i) {
    one.meta.name = "j" + std::to_string(i);
    ASSERT_TRUE(jobs.Put(one));
  }
  EXPECT_FALSE(jobs.Put(job(JobTally::kMaxParts, true))) << "one more that has ended";
  EXPECT_TRUE(jobs.Put(job(JobTally::kMaxParts, false)));
  EXPECT_EQ(jobs.Ids("job").size(), JobTally::kMaxParts);
}

}  // namespace
}  // namespace nos::controllers
