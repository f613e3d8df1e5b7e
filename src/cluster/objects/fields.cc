#include "cluster/fields.h"

#include <fmt/format.h>

#include <charconv>

namespace nos::cluster {
namespace {

std::string_view KindName(Cursor::Kind kind) {
  switch (kind) {
    case Cursor::Kind::kObject:
      return "an object";
    case Cursor::Kind::kArray:
      return "a list";
    case Cursor::Kind::kString:
      return "a string";
    case Cursor::Kind::kBool:
      return "true or false";
    default:
      return "a number";
  }
}

}  // namespace

void Field::Read(std::string& out) {
  if (Expect(Cursor::Kind::kString, "a string")) out = value_.Text();
}

void Field::Read(bool& out) {
  if (Expect(Cursor::Kind::kBool, "true or false")) out = value_.Bool();
}

template <typename Integer>
void Field::ReadInteger(Integer& out) {
  if (!Expect(Cursor::Kind::kNumber, "a whole number")) return;
  const std::string_view text = value_.Text();
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (fault == std::errc::result_out_of_range) {
    return Fail(fmt::format("does not fit into {} bits", 8 * sizeof(Integer)));
  }
  if (end != text.data() + text.size()) Fail("must be a whole number, not a number");
}

void Field::Read(int32_t& out) { ReadInteger(out); }

void Field::Read(int64_t& out) { ReadInteger(out); }

void Field::Read(std::optional<int32_t>& out) {
  if (Present()) Read(out.emplace());
}

void Field::Read(Time& out) {
  if (!Expect(Cursor::Kind::kString, "a string")) return;
  const std::string_view text = value_.Text();
  if (text.empty()) return;
  const Result<Time> time = ParseTime(text);
  if (!time.ok()) return Fail(time.status().message());
  out = *time;
}

void Field::Read(std::optional<Time>& out) {
  if (Present()) Read(out.emplace());
}

void Field::Read(Quantity& out) {
  if (!Present()) return;
  if (value_.kind() != Cursor::Kind::kNumber && !Expect(Cursor::Kind::kString, "a quantity"))
    return;
  const Result<Quantity> quantity = Quantity::Parse(value_.Text());
  if (!quantity.ok()) return Fail(quantity.status().message());
  out = *quantity;
}

void Field::Read(StringMap& out) {
  ForEach([&](std::string_view key, Field& entry) {
    entry.map_entry_ = true;
    entry.Read(out[std::string(key)]);
  });
}

void Field::Read(ResourceList& out) {
  ForEach([&](std::string_view key, Field& entry) {
    entry.map_entry_ = true;
    if (!entry.Present()) entry.Fail("must be a quantity, not null");
    Quantity& quantity = out[std::string(key)];
    entry.Read(quantity);
    if (quantity < Quantity()) entry.Fail("must not be negative");
  });
}

void Field::Read(std::vector<std::string>& out) {
  Read(out, [](Field& item, std::string& text) { item.Read(text); });
}

void Field::Entries(FunctionRef<void(std::string_view, Field&)> visit) {
  ForEach([&](std::string_view key, Field& entry) {
    entry.map_entry_ = true;
    if (!entry.Present()) return entry.Fail("must not be null");
    visit(key, entry);
  });
}

void Field::ReadRaw(std::string& out) {
  if (Present()) out = value_.Raw();
}

void Field::Fail(std::string_view what) const {
  if (error_.ok()) error_ = Invalid(fmt::format("{}: {}", Path(), what));
}

void Field::ForEach(FunctionRef<void(std::string_view, Field&)> visit) {
  if (!Expect(Cursor::Kind::kObject, "an object")) return;
  value_.Members([&](std::string_view key, Cursor& value) {
    Field member(value, *this, key, kNoIndex);
    visit(key, member);
  });
}

void Field::Elements(FunctionRef<void(Field&)> visit) {
  if (!Expect(Cursor::Kind::kArray, "a list")) return;
  size_t index = 0;
  value_.Elements([&](Cursor& value) {
    Field element(value, *this, {}, index++);
    if (!element.Present()) return element.Fail("must not be null");
    visit(element);
  });
}

bool Field::Expect(Cursor::Kind kind, std::string_view expected) {
  const Cursor::Kind found = value_.kind();
  if (found == kind) return true;
  if (found != Cursor::Kind::kNull)
    Fail(fmt::format("must be {}, not {}", expected, KindName(found)));
  return false;
}

std::string Field::Path() const {
  if (parent_ == nullptr) return "object";
  const std::string before = parent_->parent_ == nullptr ? "" : parent_->Path();
  if (index_ != kNoIndex) return fmt::format("{}[{}]", before, index_);
  if (map_entry_) return fmt::format("{}[{}]", before, key_);
  return before.empty() ? std::string(key_) : fmt::format("{}.{}", before, key_);
}

Status ReadFields(JsonSource json, FunctionRef<void(Field&)> read) {
  Status error;
  const Status json_error = ReadJson(json, [&](Cursor& value) {
    Field root(value, error);
    read(root);
  });
  return error.ok() ? json_error : error;
}

}  // namespace nos::cluster
