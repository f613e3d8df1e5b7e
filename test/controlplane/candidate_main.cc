// A candidate for a Lease as a separate process, for tests that kill it.
//
//   nos_candidate KUBECONFIG NAMESPACE LEASE IDENTITY
//
// Prints "leads" when it becomes the leader, and "follows" when it loses leadership. Runs until a
// signal.
#include <cstdio>
#include <thread>

#include "kube/connection.h"
#include "kube/http_transport.h"
#include "kube/leader_election.h"

int main(int argc, char** argv) {
  using namespace nos;  // NOLINT(google-build-using-namespace)
  if (argc != 5) return 2;
  auto config = kube::LoadConnection(argv[1], "");
  if (!config.ok()) return 1;
  kube::HttpTransport http(*std::move(config));
  kube::Client client(http);
  kube::LeaderElector elector({.ns = argv[2],
                               .name = argv[3],
                               .identity = argv[4],
                               .lease = std::chrono::seconds(3),
                               .renew = std::chrono::seconds(2),
                               .retry = std::chrono::milliseconds(300)});
  const SystemClock clock;
  for (bool led = false;;) {
    elector.Step(client, clock.Now());
    const bool leads = elector.Leads(clock.Now());
    if (leads != led) std::puts(leads ? "leads" : "follows");
    std::fflush(stdout);
    led = leads;
    std::this_thread::sleep_until(elector.NextDue());
  }
}
