#include "cmd/cli/html_page.h"

#include <fmt/format.h>

namespace nos::cmd {
namespace {

constexpr std::string_view kStyle =
    "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;"
    "color:#1a1d21;background:#fff}"
    "h1{font-size:1.6rem}h2{font-size:1.1rem;margin-top:2rem}"
    ".figures{display:flex;gap:1rem;flex-wrap:wrap}"
    ".figures div{flex:1 1 14rem;border:1px solid #d5d9de;border-radius:8px;padding:1rem}"
    ".figures b{display:block;font-size:1.8rem}"
    "table{border-collapse:collapse;width:100%}"
    "th,td{text-align:right;padding:.3rem .6rem;border-bottom:1px solid #d5d9de}"
    "th:first-child,td:first-child{text-align:left}"
    ".note{color:#545b63;font-size:.85rem}"
    "pre{background:#eef0f2;padding:1rem;border-radius:8px;overflow:auto}"
    "@media(prefers-color-scheme:dark){body{background:#14171a;color:#e4e7ea}"
    ".figures div,th,td{border-color:#3a4148}pre{background:#252a2f}.note{color:#a6adb5}}";

}  // namespace

std::string EscapeHtml(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

std::string HtmlPage(std::string_view title, std::string_view style, std::string_view body) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width\"><title>{0} by nos</title>"
      "<style>{1}{2}</style></head><body>\n<h1>{0}</h1>\n{3}</body></html>\n",
      EscapeHtml(title), kStyle, style, body);
}

}  // namespace nos::cmd
