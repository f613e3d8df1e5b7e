// Logs of simulated pods, and the commands that need a program.
#include "sim/apiserver/storage/api_fixture_test.h"

namespace nos::sim {
namespace {

class LogTest : public ApiServerTest {
 protected:
  void SetState(const std::string& state) {
    const auto patched =
        Patch(kPodsPath + std::string("/a/status"), "strategic",
              R"({"status":{"containerStatuses":[{"name":"c","image":"i","imageID":"","ready":true,
          "restartCount":0,"allocatedResourcesStatus":[{"name":"nvidia.com/mig-1g.5gb",
          "resources":[{"resourceID":"MIG-7","health":"Healthy"}]}],"state":)" +
                  state + "}]}}");
    EXPECT_EQ(patched.code, 200);
  }
  void Start() { SetState(R"({"running":{"startedAt":"2026-01-02T03:04:00Z"}})"); }
  void End() {
    SetState(R"({"terminated":{"startedAt":"2026-01-02T03:04:00Z","reason":"Completed",
        "finishedAt":"2026-01-02T03:05:00Z","exitCode":0}})");
  }
  kube::ApiResponse Log(const std::string& query = "") {
    return Get(kPodsPath + std::string("/a/log") + query);
  }
  static std::string Text(const kube::ApiResponse& answer) {
    return answer.body.is_string() ? std::string(answer.body.get_string()) : "";
  }
  static std::string Message(const kube::ApiResponse& answer) {
    return std::string(FindString(answer.body, "message"));
  }
};

TEST_F(LogTest, SaysWhichDeviceTheContainerHas) {
  AddPod("a");
  Bind("a", "n1");
  Start();
  const std::string text = Text(Log());
  EXPECT_NE(text.find("No program runs here"), std::string::npos) << text;
  EXPECT_NE(text.find("container c of pod default/a on node n1\n"), std::string::npos) << text;
  EXPECT_NE(text.find("device nvidia.com/mig-1g.5gb: MIG-7\n"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("started at 2026-01-02T03:04:00Z\n")) << text;
  End();
  EXPECT_TRUE(Text(Log()).ends_with("ended at 2026-01-02T03:05:00Z: Completed, exit code 0\n"));
}

TEST_F(LogTest, CutsTheLogAsAsked) {
  AddPod("a");
  Bind("a", "n1");
  End();
  EXPECT_EQ(Text(Log("?tailLines=1")), "ended at 2026-01-02T03:05:00Z: Completed, exit code 0\n");
  EXPECT_EQ(Text(Log("?tailLines=0")), "");
  EXPECT_EQ(Text(Log("?sinceTime=2026-01-02T03:04:30Z")),
            "ended at 2026-01-02T03:05:00Z: Completed, exit code 0\n");
  EXPECT_EQ(Text(Log("?limitBytes=10")), "No program");
  EXPECT_TRUE(Text(Log("?timestamps=true")).starts_with("2026-01-02T03:04:00Z No program"));
  EXPECT_EQ(Log("?tailLines=-1").code, 422);
  EXPECT_EQ(Log("?tailLines=x").code, 422);
  EXPECT_EQ(Log("?sinceTime=yesterday").code, 400);
}

TEST_F(LogTest, RefusesInTheWordsOfTheRealServer) {
  EXPECT_EQ(Log().code, 404);
  Post(kPodsPath, R"({"metadata":{"name":"a"},"spec":{"containers":[{"name":"c","image":"i"},
      {"name":"d","image":"i"}],"initContainers":[{"name":"e","image":"i"}]}})");
  EXPECT_EQ(Message(Log()),
            "a container name must be specified for pod a, choose one of: [c d] or one of the init "
            "containers: [e]");
  EXPECT_EQ(Message(Log("?container=x")), "container x is not valid for pod a");
  const auto waiting = Log("?container=c");  // it has no node yet
  EXPECT_EQ(waiting.code, 200);
  EXPECT_EQ(Text(waiting), "");
  Bind("a", "n1");
  EXPECT_EQ(Log("?container=c").code, 400);
  EXPECT_EQ(Message(Log("?container=c")),
            "container \"c\" in pod \"a\" is waiting to start: ContainerCreating");
  Start();
  EXPECT_EQ(Message(Log("?container=c&previous=true")),
            "previous terminated container \"c\" in pod \"a\" not found");
}

TEST_F(LogTest, RefusesCommandsWithAPlainSentence) {
  AddPod("a");
  const auto exec = Send("POST", kPodsPath + std::string("/a/exec?command=ls"));
  EXPECT_EQ(exec.code, 400);
  EXPECT_EQ(Message(exec),
            "pod \"a\" is simulated: no program runs in it, so there is nothing to execute a "
            "command in");
  EXPECT_EQ(Send("POST", kPodsPath + std::string("/a/portforward")).code, 400);
}

}  // namespace
}  // namespace nos::sim
