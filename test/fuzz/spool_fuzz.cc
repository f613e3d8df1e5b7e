// Names of files in the folder of a reporter's spool, one a line, as a damaged disk may return
// them. A line that begins with '!' is a file that is no envelope. Each envelope is handed out at
// most once, in order, by numbers that a server takes; and the spool goes on with new ones.
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/text.h"
#include "codec/gzip.h"
#include "codec/json.h"
#include "codec/utf8.h"
#include "target.h"
#include "telemetry/envelope.h"
#include "telemetry/envelope_writer.h"
#include "telemetryreporter/spool.h"

using namespace nos;             // NOLINT
using namespace nos::telemetry;  // NOLINT

namespace {

using Files = std::map<std::string, std::string>;

class Folder final : public SpoolFolder {
 public:
  explicit Folder(Files& files) : files_(files) {}
  Status Write(const std::string& name, std::string_view content) override {
    files_[name] = content;
    return Status::Ok();
  }
  Status Rename(const std::string& from, const std::string& to) override {
    const auto found = files_.find(from);
    if (found == files_.end()) return NotFound(from);
    if (from == to) return Status::Ok();
    std::string content = std::move(found->second);
    files_.erase(found);
    files_[to] = std::move(content);
    return Status::Ok();
  }
  void Remove(const std::string& name) override { files_.erase(name); }
  Status Sync() override { return Status::Ok(); }
  Result<std::string> Read(const std::string& name, size_t) override {
    const auto found = files_.find(name);
    return found == files_.end() ? Result<std::string>(NotFound(name))
                                 : Result<std::string>(found->second);
  }
  Result<std::vector<Listed>> List() override {
    std::vector<Listed> listed;
    for (const auto& [name, content] : files_) {
      if (name.find('/') == std::string::npos) listed.push_back({name, content.size()});
    }
    return listed;
  }

 private:
  Files& files_;
};

Files FilesOf(std::string_view text) {
  constexpr size_t kMaxName = 255;
  static const std::string kEnvelope = Gzip("1");
  Files files;
  for (std::string_view name : Split(text, '\n')) {
    const bool damaged = name.starts_with('!');
    if (damaged) name.remove_prefix(1);
    if (name.empty() || name.size() > kMaxName || name.find('/') != std::string_view::npos)
      continue;
    files[std::string(name)] = damaged ? "?" : kEnvelope;
  }
  return files;
}

// A server takes an envelope with this number.
void CheckTaken(const Spool& spool, const SpooledEnvelope& envelope) {
  const EnvelopeHead head{"c", "node/n", spool.boot(), envelope.sequence, Time{}, envelope.lost};
  const auto read = ReadEnvelope(WriteEnvelope(head, ""), 0);
  Require(read.ok(), "a server reads the envelope");
  Require(static_cast<uint64_t>(read->sequence) == envelope.sequence, "with its number");
  Require(static_cast<uint64_t>(read->lost) == envelope.lost, "and the number of lost records");
}

// Opens, appends a record and delivers everything; returns the last number by boot.
void Run(Files& files, std::map<std::string, uint64_t>& last) {
  auto opened = Spool::Open({.folder = ""}, std::make_unique<Folder>(files));
  Require(opened.ok(), "a spool opens whatever its folder has");
  Spool& spool = **opened;
  const uint64_t before = spool.Stats().envelopes;
  Require(spool.Append(std::vector<std::string>{"7"}).ok(), "a record is kept");
  uint64_t handed = 0;
  bool own = false;
  while (const auto envelope = spool.Oldest()) {
    uint64_t& known = last[spool.boot()];
    Require(envelope->sequence > known, "numbers increase");
    known = envelope->sequence;
    CheckTaken(spool, *envelope);
    own = envelope->records == "7";
    Require(spool.Acknowledge(envelope->sequence).ok(), "it is acknowledged");
    Require(++handed <= before + 1, "each once");
  }
  Require(own, "the new record comes last");
  const SpoolStats stats = spool.Stats();
  Require(stats.envelopes == 0 && stats.bytes == 0, "nothing is left");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Files files = FilesOf(FuzzText(data, size));
  std::map<std::string, uint64_t> last;
  for (int start = 0; start < 3; ++start) Run(files, last);
  Require(last.size() == 1, "all starts are of one boot");
  return 0;
}
