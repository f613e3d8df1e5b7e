// Runs a fuzz target over files and directories of recorded inputs, without libFuzzer.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "target.h"

namespace {

namespace fs = std::filesystem;

void Replay(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(stream)), {});
  std::cerr << "replaying " << file << '\n';
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(text.data()), text.size());
}

size_t ReplayAll(const fs::path& path) {
  if (!fs::is_directory(path)) {
    Replay(path);
    return 1;
  }
  size_t count = 0;
  for (const auto& entry : fs::directory_iterator(path)) count += ReplayAll(entry.path());
  return count;
}

}  // namespace

int main(int argc, char** argv) {
  size_t count = 0;
  for (int i = 1; i < argc; ++i) count += ReplayAll(argv[i]);
  std::cout << count << " inputs replayed\n";
  return count == 0 ? 1 : 0;
}
