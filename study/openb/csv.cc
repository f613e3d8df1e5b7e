#include "study/openb/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/text.h"

namespace nos::study {
namespace {

constexpr size_t kMaxRows = 1'000'000;
constexpr size_t kShownText = 40;

std::string Shown(std::string_view text) {
  return std::string(text.substr(0, kShownText)) + (text.size() > kShownText ? "..." : "");
}

// Removes the first line from the text and returns it.
std::string_view NextLine(std::string_view& text) {
  const size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return Trim(line);
}

std::vector<std::string_view> Fields(std::string_view line) {
  std::vector<std::string_view> fields = Split(line, ',');
  for (std::string_view& field : fields) field = Trim(field);
  return fields;
}

}  // namespace

std::string_view CsvRow::Optional(std::string_view column) const {
  const auto& columns = header_->columns;
  const auto found = std::find(columns.begin(), columns.end(), column);
  return found == columns.end() ? std::string_view() : fields_[found - columns.begin()];
}

Result<std::string_view> CsvRow::Text(std::string_view column) const {
  const auto& columns = header_->columns;
  if (std::find(columns.begin(), columns.end(), column) == columns.end()) {
    return Invalid(fmt::format("{}:1: column '{}' is missing; the header has: {}", header_->file,
                               column, Shown(fmt::format("{}", fmt::join(columns, ",")))));
  }
  const std::string_view text = Optional(column);
  if (text.empty()) return Error(column, "is empty");
  return text;
}

Result<int64_t> CsvRow::Number(std::string_view column, int64_t least, int64_t most) const {
  NOS_ASSIGN(const std::string_view text, Text(column));
  const std::optional<int64_t> number = ParseInt(text);
  if (!number || *number < least || *number > most) {
    return Error(column,
                 fmt::format("'{}' is not a whole number from {} to {}", Shown(text), least, most));
  }
  return *number;
}

Status CsvRow::Error(std::string_view column, std::string_view message) const {
  return Invalid(fmt::format("{}:{}: {}: {}", header_->file, line_, column, message));
}

Result<Csv> Csv::Parse(std::string_view file, std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  const std::string_view first = NextLine(text);
  if (first.empty()) return Invalid(fmt::format("{}:1: the header line is missing", file));

  Csv csv;
  auto header = std::make_unique<CsvHeader>(CsvHeader{std::string(file), Fields(first)});
  for (size_t line = 2; !text.empty(); ++line) {
    const std::string_view content = NextLine(text);
    if (content.empty()) continue;
    std::vector<std::string_view> fields = Fields(content);
    if (fields.size() != header->columns.size()) {
      return Invalid(fmt::format("{}:{}: {} fields, but the header names {}", file, line,
                                 fields.size(), header->columns.size()));
    }
    if (csv.rows_.size() == kMaxRows) {
      return Invalid(fmt::format("{}:{}: more than {} rows", file, line, kMaxRows));
    }
    csv.rows_.emplace_back(*header, line, std::move(fields));
  }
  if (csv.rows_.empty()) return Invalid(fmt::format("{}: no rows below the header", file));
  csv.header_ = std::move(header);
  return csv;
}

}  // namespace nos::study
