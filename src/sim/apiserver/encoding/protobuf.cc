#include "sim/protobuf.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>

#include "base/clock.h"
#include "codec/base64.h"
#include "codec/utf8.h"
#include "sim/apiserver/schemas/fields.h"

namespace nos::sim {
namespace {

constexpr std::string_view kMagic("k8s\0", 4);
constexpr int kMaxNesting = 40;  // far above the nesting of the schema

// One field in wire format.
struct WireField {
  uint64_t number = 0;
  uint64_t value = 0;      // varint and fixed
  std::string_view bytes;  // length-delimited
  bool delimited = false;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  bool AtEnd() const { return bytes_.empty(); }

  std::optional<WireField> Next() {
    const auto tag = Varint();
    if (!tag) return std::nullopt;
    WireField field;
    field.number = *tag >> 3;
    switch (*tag & 7) {
      case 0: {
        const auto value = Varint();
        if (!value) return std::nullopt;
        field.value = *value;
        return field;
      }
      case 1:
        return Fixed(8, field);
      case 2: {
        const auto size = Varint();
        if (!size || *size > bytes_.size()) return std::nullopt;
        field.bytes = bytes_.substr(0, *size);
        field.delimited = true;
        bytes_.remove_prefix(*size);
        return field;
      }
      case 5:
        return Fixed(4, field);
      default:
        return std::nullopt;
    }
  }

 private:
  std::optional<uint64_t> Varint() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !bytes_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes_.front());
      bytes_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    return std::nullopt;
  }

  std::optional<WireField> Fixed(size_t size, WireField field) {
    if (bytes_.size() < size) return std::nullopt;
    for (size_t i = 0; i < size; ++i) {
      field.value |= static_cast<uint64_t>(static_cast<unsigned char>(bytes_[i])) << (8 * i);
    }
    bytes_.remove_prefix(size);
    return field;
  }

  std::string_view bytes_;
};

Status NotKnown(std::string_view what) {
  return Invalid(fmt::format("protobuf: \"{}\" is not known here; send JSON", what));
}

Status Malformed() { return Invalid("protobuf: the bytes are malformed"); }

// Field 1 of a wrapper message (Quantity, the envelope's parts).
Result<std::map<uint64_t, WireField>> ReadAll(std::string_view bytes) {
  std::map<uint64_t, WireField> fields;
  Reader reader(bytes);
  while (!reader.AtEnd()) {
    const auto field = reader.Next();
    if (!field) return Malformed();
    fields[field->number] = *field;
  }
  return fields;
}

class Decoder {
 public:
  static Result<JsonObject> Decode(std::string_view bytes, const Message& message, int depth) {
    if (depth > kMaxNesting) return Invalid("protobuf: nested too deeply");
    JsonObject object;
    Reader reader(bytes);
    while (!reader.AtEnd()) {
      const auto field = reader.Next();
      if (!field) return Malformed();
      const auto rule = message.by_number.find(field->number);
      if (rule == message.by_number.end()) continue;  // newer than this schema
      NOS_RETURN_IF_ERROR(Put(*field, rule->second, depth, object));
    }
    return object;
  }

 private:
  static Status Put(const WireField& field, const FieldRule& rule, int depth, JsonObject& object) {
    if (rule.shape == FieldRule::Shape::kMap) return PutEntry(field, rule, depth, object);
    NOS_ASSIGN(Json value, Value(field, rule, depth));
    if (rule.shape == FieldRule::Shape::kList) {
      Json& list = object[rule.name];
      if (!list.is_array()) list.emplace_array();
      list.get_array().push_back(std::move(value));
    } else if (rule.shape == FieldRule::Shape::kInline) {
      if (!value.is_object()) return Malformed();
      for (auto& [key, member] : value.get_object()) object[key] = std::move(member);
    } else if (!value.is_null() && value != "") {
      object[rule.name] = std::move(value);
    }
    return Status::Ok();
  }

  static Status PutEntry(const WireField& field, const FieldRule& rule, int depth,
                         JsonObject& object) {
    NOS_ASSIGN(const auto entry, ReadAll(field.bytes));
    const auto key = entry.find(1);
    const auto content = entry.find(2);
    WireField value;
    value.delimited = true;
    if (content != entry.end()) value = content->second;
    NOS_ASSIGN(Json decoded, Value(value, rule, depth));
    Json& map = object[rule.name];
    if (!map.is_object()) map.emplace_object();
    NOS_ASSIGN(const Json name, Text(key == entry.end() ? "" : key->second.bytes));
    map.get_object()[name.get_string()] = std::move(decoded);
    return Status::Ok();
  }

  static Result<Json> Value(const WireField& field, const FieldRule& rule, int depth) {
    const std::string_view type = rule.type;
    if (type == "i") return Json(static_cast<int64_t>(field.value));
    if (type == "b") return Json(field.value != 0);
    if (type == "d") return Number(std::bit_cast<double>(field.value));
    if (!field.delimited) return Malformed();
    if (type == "s") return Text(field.bytes);
    if (type == "y") return Json(boost::json::string(EncodeBase64(field.bytes)));
    if (type == "R") return Raw(field.bytes);
    if (type == "Q" || type == "T" || type == "U" || type == "I") return Wrapped(field.bytes, type);
    if (rule.message == nullptr) return NotKnown(rule.name);
    NOS_ASSIGN(JsonObject object, Decode(field.bytes, *rule.message, depth + 1));
    return Json(std::move(object));
  }

  // Texts and numbers that JSON cannot represent are errors.
  static Result<Json> Text(std::string_view bytes) {
    if (!IsUtf8(bytes)) return Invalid("protobuf: a text is not UTF-8");
    return Json(boost::json::string(bytes));
  }
  static Result<Json> Number(double value) {
    if (!std::isfinite(value)) return Invalid("protobuf: a number is not finite");
    return Json(value);
  }

  static Result<Json> Raw(std::string_view bytes) {
    NOS_ASSIGN(const auto fields, ReadAll(bytes));
    const auto raw = fields.find(1);
    if (raw == fields.end()) return Json();
    return ParseJson(raw->second.bytes);
  }

  static Result<Json> Wrapped(std::string_view bytes, std::string_view type) {
    NOS_ASSIGN(const auto fields, ReadAll(bytes));
    const auto at = [&](uint64_t number) {
      const auto found = fields.find(number);
      return found == fields.end() ? WireField() : found->second;
    };
    if (type == "Q") return Text(at(1).bytes);
    if (type == "I") {
      const bool text = at(1).value == 1;
      return text ? Text(at(3).bytes)
                  : Json(static_cast<int64_t>(static_cast<int32_t>(at(2).value)));
    }
    return Moment(static_cast<int64_t>(at(1).value), static_cast<int64_t>(at(2).value), type);
  }

  static Result<Json> Moment(int64_t seconds, int64_t nanos, std::string_view type) {
    constexpr int64_t kLatest = 9'000'000'000;  // about the maximum of 64-bit nanoseconds
    // The zero time of Go is in year 1 and means "no time".
    if (seconds <= 0 || seconds > kLatest || nanos < 0 || nanos > 999'999'999) return Json();
    const Time time{std::chrono::seconds(seconds)};
    std::string text = FormatTime(time);
    if (type == "U") text.insert(text.size() - 1, fmt::format(".{:06}", nanos / 1000));
    return Json(boost::json::string(text));
  }
};

}  // namespace

Result<Json> DecodeProtobuf(std::string_view bytes) {
  if (!bytes.starts_with(kMagic)) return Invalid("protobuf: the body does not begin with k8s\\0");
  NOS_ASSIGN(const auto envelope, ReadAll(bytes.substr(kMagic.size())));
  const auto type = envelope.find(1);
  const auto raw = envelope.find(2);
  if (type == envelope.end()) return Invalid("protobuf: the body names no kind");
  NOS_ASSIGN(const auto names, ReadAll(type->second.bytes));
  const auto name = [&](uint64_t number) {
    const auto found = names.find(number);
    return found == names.end() ? std::string() : std::string(found->second.bytes);
  };
  const std::string version = name(1);
  const std::string kind = name(2);
  if (!IsUtf8(version)) return Malformed();
  const bool new_event = kind == "Event" && version.starts_with("events.k8s.io/");
  const std::string_view content = raw == envelope.end() ? std::string_view() : raw->second.bytes;
  const Message* message = FindMessage(new_event ? "EventsEvent" : kind);
  if (message == nullptr) return NotKnown(kind);
  NOS_ASSIGN(JsonObject object, Decoder::Decode(content, *message, 0));
  object["apiVersion"] = version;
  object["kind"] = kind;
  return Json(std::move(object));
}

}  // namespace nos::sim
