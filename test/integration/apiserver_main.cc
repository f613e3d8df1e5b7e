// Serves an empty cluster on loopback until the end of standard input.
//
//   nos_apiserver KUBECONFIG [PORT]
//
// Writes a kubeconfig to the given file once it listens, and prints "ready".
#include <cstdio>
#include <fstream>
#include <iostream>

#include "base/text.h"
#include "sim/serve.h"

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: nos_apiserver KUBECONFIG [PORT]\n";
    return 2;
  }
  const auto port = argc > 2 ? nos::ParseInt(argv[2]).value_or(0) : 0;
  const nos::SystemClock clock;
  nos::sim::ApiServer api(clock);
  const auto server = nos::sim::ServeApi(api, "127.0.0.1", static_cast<uint16_t>(port));
  if (!server.ok()) {
    std::cerr << server.status().ToString() << "\n";
    return 1;
  }
  std::ofstream(argv[1]) << nos::sim::KubeconfigFor("127.0.0.1", (*server)->port());
  std::cout << "ready" << std::endl;
  while (std::getchar() != EOF) {
  }
  return 0;
}
