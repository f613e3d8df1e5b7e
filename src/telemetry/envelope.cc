#include "telemetry/envelope.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace nos::telemetry {
namespace {

constexpr size_t kMaxName = 253;
constexpr size_t kMaxRefused = 100;  // that are reported; the others mostly have the same fault

Status TakeName(const Json& tree, std::string_view key, std::string& name) {
  name = std::string(FindString(tree, key));
  if (!name.empty() && name.size() <= kMaxName) return Status::Ok();
  return Invalid(fmt::format("envelope: {} is no text of 1 to {} bytes", key, kMaxName));
}

Result<Envelope> ReadHead(const Json& tree) {
  if (IntegerOr(tree, "schema", 0) != 1) {
    return Invalid("envelope: schema is not 1, the one that this version reads");
  }
  Envelope envelope;
  NOS_RETURN_IF_ERROR(TakeName(tree, "cluster", envelope.cluster));
  NOS_RETURN_IF_ERROR(TakeName(tree, "source", envelope.source));
  NOS_RETURN_IF_ERROR(TakeName(tree, "boot", envelope.boot));
  envelope.sequence = IntegerOr(tree, "sequence", 0);
  if (envelope.sequence < 1) return Invalid("envelope: sequence is no integer from 1");
  envelope.sent_at = IntegerOr(tree, "sent_at", 0);
  envelope.lost = std::max<int64_t>(0, IntegerOr(tree, "lost", 0));
  return envelope;
}

// An agent's records; those of unknown kinds have no effect.
Status CheckAbout(const Record& record, std::string_view node) {
  if (const auto* layout = std::get_if<Layout>(&record.what)) {
    if (layout->node == node) return Status::Ok();
    return Invalid(fmt::format("layout: node/{} does not report for node {}", node, layout->node));
  }
  const bool of_gpus = std::holds_alternative<Readings>(record.what) || record.kind == "xid";
  if (of_gpus || std::holds_alternative<Unknown>(record.what)) return Status::Ok();
  return Invalid(fmt::format("{}: node/{} reports only its GPUs", record.kind, node));
}

template <typename Read>
void ReadRecords(Json& tree, Millis latest, Read read, Envelope& envelope) {
  size_t number = 0;
  for (Json& body : tree.get_object().find("records")->value().get_array()) {
    Result<Record> record = read(std::move(body));
    if (record.ok() && record->at > latest) {
      record = Invalid(record->kind + ": at lies in the future: set the clocks");
    }
    if (record.ok()) {
      envelope.records.push_back(std::move(record).value());
    } else if (envelope.refused.size() < kMaxRefused) {
      envelope.refused.push_back({number, record.status().message()});
    }
    ++number;
  }
}

// An upper bound of the values in the text, which costs no memory. A tree takes up to 64 bytes for
// a value of 2 bytes.
size_t CountValues(std::string_view text) {
  size_t values = 1;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\') {
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && (c == ',' || c == '[' || c == '{')) {
      ++values;
    }
  }
  return values;
}

Result<Json> ReadTree(std::string_view text) {
  NOS_ASSIGN(Json tree, ParseJson(text));
  const Json* records = Find(tree, "records");
  if (records == nullptr || !records->is_array()) return Invalid("envelope: records is no list");
  if (records->get_array().size() > kMaxRecords) {
    return Invalid(fmt::format("envelope: more than {} records", kMaxRecords));
  }
  return tree;
}

void SetRight(Envelope& envelope, Millis now) {
  const Millis ahead =
      envelope.sent_at > now ? std::min(envelope.sent_at - now, kMaxAhead) : Millis{0};
  for (Record& record : envelope.records) {
    const bool others = record.kind == "event";
    const Millis at = std::min(now, others ? record.at : std::max<Millis>(0, record.at - ahead));
    if (at != record.at) SetTime(record, at);
  }
}

}  // namespace

std::string_view NodeOfSource(std::string_view source) {
  constexpr std::string_view kNode = "node/";
  return source.starts_with(kNode) ? source.substr(kNode.size()) : std::string_view();
}

Result<Envelope> ReadEnvelope(std::string_view text, Millis now) {
  if (CountValues(text) > kMaxValues) {
    return Status(Code::kExhausted, fmt::format("envelope: more than {} values", kMaxValues));
  }
  NOS_ASSIGN(Json tree, ReadTree(text));
  NOS_ASSIGN(Envelope envelope, ReadHead(tree));
  const std::string_view node = NodeOfSource(envelope.source);
  const auto read = [&](Json body) -> Result<Record> {
    NOS_ASSIGN(Record record, ReadRecord(std::move(body)));
    if (!node.empty()) NOS_RETURN_IF_ERROR(CheckAbout(record, node));
    return record;
  };
  ReadRecords(tree, now + kMaxAhead, read, envelope);
  SetRight(envelope, now);
  return envelope;
}

Result<Envelope> ReadDerivedEnvelope(std::string_view text) {
  NOS_ASSIGN(Json tree, ReadTree(text));
  Envelope envelope;
  NOS_RETURN_IF_ERROR(TakeName(tree, "cluster", envelope.cluster));
  ReadRecords(tree, std::numeric_limits<Millis>::max(), ReadDerivedRecord, envelope);
  return envelope;
}

}  // namespace nos::telemetry
