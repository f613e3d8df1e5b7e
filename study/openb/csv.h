// A comma-separated file with a header line, whose columns are found by name. No quoting.
//
//   NOS_ASSIGN(const Csv csv, Csv::Parse("nodes.csv", text));
//   for (const CsvRow& row : csv.rows()) {
//     NOS_ASSIGN(const int64_t gpus, row.Number("gpu", 0, 64));  // "nodes.csv:7: gpu: ..."
//   }
//
// Rows view into the text and into the Csv: both must outlive them. Immutable after Parse.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace nos::study {

struct CsvHeader {
  std::string file;
  std::vector<std::string_view> columns;
};

class CsvRow {
 public:
  CsvRow(const CsvHeader& header, size_t line, std::vector<std::string_view> fields)
      : header_(&header), line_(line), fields_(std::move(fields)) {}

  // The column's text, trimmed. Error: kInvalid when the column is missing or the field is empty.
  Result<std::string_view> Text(std::string_view column) const;
  // "" when there is no such column.
  std::string_view Optional(std::string_view column) const;
  // A whole number from `least` to `most`, else kInvalid.
  Result<int64_t> Number(std::string_view column, int64_t least, int64_t most) const;
  // kInvalid, with file, line and column before the message.
  Status Error(std::string_view column, std::string_view message) const;

 private:
  const CsvHeader* header_;
  size_t line_;  // from 1
  std::vector<std::string_view> fields_;
};

class Csv {
 public:
  // Error: kInvalid for no header, no rows, a row with another number of fields than the header,
  // more than a million rows.
  static Result<Csv> Parse(std::string_view file, std::string_view text);

  const std::vector<CsvRow>& rows() const { return rows_; }

 private:
  std::unique_ptr<const CsvHeader> header_;  // rows point at it, so it must not move
  std::vector<CsvRow> rows_;
};

}  // namespace nos::study
