// The kubelet's double as a program: commands on standard input, one line of answer each.
//
//   nos-kubelet-double PLUGINS_FOLDER POD_RESOURCES_SOCKET
//   admit NAMESPACE POD RESOURCE COUNT   -> ok ID... | error TEXT
//   remove NAMESPACE POD                 -> ok
//   resources                            -> ok RESOURCE=ALLOCATABLE/CAPACITY ...
//
// Prints "ready" first; runs until the end of its input.

#include <exception>
#include <iostream>
#include <sstream>
#include <string>

#include "doubles/kubelet/device_manager.h"

namespace {

using nos::doubles::KubeletDouble;

std::string Admit(KubeletDouble& kubelet, std::istream& words) {
  nos::doubles::PodName pod;
  std::string resource;
  int64_t count = 0;
  if (!(words >> pod.ns >> pod.name >> resource >> count) || count < 1) {
    return "error expected: admit NAMESPACE POD RESOURCE COUNT";
  }
  const auto admitted = kubelet.Admit(pod, {{resource, count}});
  if (!admitted.ok()) return "error " + admitted.status().message();
  std::string answer = "ok";
  for (const std::string& id : admitted->ids) answer += " " + id;
  return answer;
}

std::string Remove(KubeletDouble& kubelet, std::istream& words) {
  std::string ns, name;
  if (!(words >> ns >> name)) return "error expected: remove NAMESPACE POD";
  kubelet.Remove(ns, name);
  return "ok";
}

std::string Resources(const KubeletDouble& kubelet) {
  std::ostringstream answer("ok", std::ios::ate);
  for (const auto& [resource, count] : kubelet.Resources()) {
    answer << " " << resource << "=" << count.allocatable << "/" << count.capacity;
  }
  return answer.str();
}

std::string Answer(KubeletDouble& kubelet, const std::string& line) {
  std::istringstream words(line);
  std::string command;
  words >> command;
  if (command == "admit") return Admit(kubelet, words);
  if (command == "remove") return Remove(kubelet, words);
  if (command == "resources") return Resources(kubelet);
  return "error no command '" + command + "'; one of: admit, remove, resources";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: nos-kubelet-double PLUGINS_FOLDER POD_RESOURCES_SOCKET\n";
    return 2;
  }
  try {
    KubeletDouble kubelet({.plugins = argv[1], .pod_resources = argv[2]});
    std::cout << "ready" << std::endl;
    for (std::string line; std::getline(std::cin, line);) {
      std::cout << Answer(kubelet, line) << std::endl;
    }
  } catch (const std::exception& error) {
    std::cerr << "nos-kubelet-double: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
