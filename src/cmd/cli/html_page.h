// Pages that need nothing from outside, to send to a colleague.
//
//   std::cout << HtmlPage("GPU audit", style, "<h2>" + EscapeHtml(name) + "</h2>");
//
// Pure functions.
#pragma once

#include <string>
#include <string_view>

namespace nos::cmd {

std::string EscapeHtml(std::string_view text);

// A page in light and dark with the title as its heading. `style`: further CSS, beside that of
// text, tables, <pre> and .figures; `body`: HTML.
std::string HtmlPage(std::string_view title, std::string_view style, std::string_view body);

}  // namespace nos::cmd
