// Writes a simulated schedule as an HTML page. It has a table, and a timeline of every device with
// its transfers and its memory.
#pragma once

#include <string>

#include "partition/simulation/simulator.h"
#include "partition/simulation/timeline_page.h"

namespace convoy::partition {

std::string report_html(const std::string& title, const ReportRows& rows, const CostModel& cost,
                        const Simulation& simulation);

}  // namespace convoy::partition
