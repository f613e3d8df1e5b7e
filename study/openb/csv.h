// A comma-separated file with a header line; columns are found by name. Quoting is not supported.
//
//   NOS_ASSIGN(const Csv csv, Csv::Parse("nodes.csv", text));
//   for (const CsvRow& row : csv.rows()) {
//     NOS_ASSIGN(const int64_t gpus, row.Number("gpu", 0, 64));  // "nodes.csv:7: gpu: ..."
//   }
//
// Rows refer to the text and to the Csv: both must outlive them. Immutable after Parse.
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

  // The trimmed text of the column. Error: kInvalid if the column is missing or the field is empty.
  Result<std::string_view> Text(std::string_view column) const;
  // "" if the column does not exist.
  std::string_view Optional(std::string_view column) const;
  // An integer from `least` to `most`. Error: kInvalid.
  Result<int64_t> Number(std::string_view column, int64_t least, int64_t most) const;
  // A kInvalid status with file, line and column in front of the message.
  Status Error(std::string_view column, std::string_view message) const;

 private:
  const CsvHeader* header_;
  size_t line_;  // from 1
  std::vector<std::string_view> fields_;
};

class Csv {
 public:
  // Error: kInvalid if the header or all rows are missing, if a row has a different number of
  // fields than the header, or for more than a million rows.
  static Result<Csv> Parse(std::string_view file, std::string_view text);

  const std::vector<CsvRow>& rows() const { return rows_; }

 private:
  std::unique_ptr<const CsvHeader> header_;  // on the heap, because rows point to it
  std::vector<CsvRow> rows_;
};

}  // namespace nos::study
