// Objects other than pods and nodes that schedulers and telemetry watch, as sent by an API server:
// every reader decodes them directly from text and through a tree. Both accept the object or
// neither, and accepted objects are complete.
#include "cluster/context.h"
#include "cluster/node_pool.h"
#include "cluster/work.h"
#include "codec/duplicate_keys.h"
#include "codec/json.h"
#include "target.h"

using namespace nos;           // NOLINT
using namespace nos::cluster;  // NOLINT

namespace {

template <typename T>
void ReadTwice(const std::string& text, const Json& tree, Status (*read)(JsonSource, T&)) {
  T of_text, of_tree;
  const bool is_read = read(text, of_text).ok();
  Require(read(tree, of_tree).ok() == is_read, "both take it or neither");
  if (!is_read) return;
  Require(of_text.meta.name == of_tree.meta.name && of_text.meta.ns == of_tree.meta.ns &&
              of_text.meta.uid == of_tree.meta.uid && of_text.meta.labels == of_tree.meta.labels,
          "the same object");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(FuzzText(data, size));
  const Result<Json> json = ParseJson(text);
  // See wire_fuzz.cc: the meaning of a duplicate key is undefined.
  if (!json.ok() || !FindDuplicateKeys(text, 1).empty() || HasTinyNumbers(text)) return 0;
  ReadTwice(text, *json, ReadNamespace);
  ReadTwice(text, *json, ReadClaim);
  ReadTwice(text, *json, ReadVolume);
  ReadTwice(text, *json, ReadStorageClass);
  ReadTwice(text, *json, ReadCsiNode);
  ReadTwice(text, *json, ReadCsiDriver);
  ReadTwice(text, *json, ReadCsiStorageCapacity);
  ReadTwice(text, *json, ReadVolumeAttachment);
  ReadTwice(text, *json, ReadEqualitySelector);
  ReadTwice(text, *json, ReadLabelSelector);
  ReadTwice(text, *json, ReadBudget);
  ReadTwice(text, *json, ReadPodGroup);
  ReadTwice(text, *json, ReadWorkload);
  ReadTwice(text, *json, ReadJob);
  ReadTwice(text, *json, ReadKueueWorkload);
  ReadTwice(text, *json, ReadKueueQueue);
  ReadTwice(text, *json, ReadEvent);
  ReadTwice(text, *json, ReadNodePool);
  return 0;
}
