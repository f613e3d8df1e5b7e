// Leader election on the real API server between processes, one of which is killed.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "contract.h"

namespace nos::kube {
namespace {

// A nos_candidate process; killed by the destructor.
class Candidate {
 public:
  Candidate(const std::string& ns, const std::string& identity) {
    std::array<int, 2> ends{};
    EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
    const std::string kubeconfig = ControlPlaneFolder() + "/kubeconfig";
    pid_ = fork();
    if (pid_ == 0) {
      dup2(ends[1], STDOUT_FILENO);
      execl(NOS_CANDIDATE, NOS_CANDIDATE, kubeconfig.c_str(), ns.c_str(), "lead", identity.c_str(),
            nullptr);
      _exit(127);
    }
    close(ends[1]);
    output_ = ends[0];
  }
  ~Candidate() {
    Kill();
    close(output_);
  }
  Candidate(const Candidate&) = delete;
  Candidate& operator=(const Candidate&) = delete;

  // The next line of its output; "" after its end.
  std::string Line() {
    std::string line;
    for (char c; read(output_, &c, 1) == 1 && c != '\n';) line += c;
    return line;
  }
  void Kill() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(std::exchange(pid_, 0), nullptr, 0);
  }

 private:
  pid_t pid_ = 0;
  int output_ = -1;
};

class LeaderContract : public ContractTest {
 protected:
  std::string Holder() {
    const auto lease = client_->Get(kLeases, ns_, "lead");
    return lease.ok() ? std::string(FindString(*lease, "spec", "holderIdentity")) : "";
  }
};

TEST_F(LeaderContract, SuccessorFollowsKilledLeader) {
  Candidate first(ns_, "first");
  ASSERT_EQ(first.Line(), "leads");
  Candidate second(ns_, "second");
  EXPECT_EQ(Holder(), "first");
  first.Kill();
  EXPECT_EQ(second.Line(), "leads");
  EXPECT_EQ(Holder(), "second");
  EXPECT_EQ(*Find(*client_->Get(kLeases, ns_, "lead"), "spec", "leaseTransitions"), 1);
}

using LeaderOutage = LeaderContract;

TEST_F(LeaderOutage, LeaderSurvivesApiServerRestart) {
  Candidate only(ns_, "only");
  ASSERT_EQ(only.Line(), "leads");
  ControlPlane("kill kube-apiserver");
  EXPECT_EQ(only.Line(), "follows") << "it cannot know whether somebody has taken over";
  ControlPlane("start kube-apiserver");
  EXPECT_EQ(only.Line(), "leads");
  EXPECT_EQ(Holder(), "only");
}

}  // namespace
}  // namespace nos::kube
