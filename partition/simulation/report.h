// A simulated schedule as one self-contained HTML page: a table, and an SVG timeline of every device with its
// transfers and its memory. No script, no link: it opens anywhere.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "partition/simulation/simulator.h"

namespace convoy::partition {

using ReportRows = std::vector<std::pair<std::string, std::string>>;

// Stretches too narrow to be seen are drawn together, so that a page stays small for a million nodes.
std::string report_html(const std::string& title, const ReportRows& rows, const CostModel& cost,
                        const Simulation& simulation);

}  // namespace convoy::partition
