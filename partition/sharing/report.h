// A schedule of clients that share a device: as a page with a timeline of every engine and of the
// memory, and as Chrome trace JSON (chrome://tracing, Perfetto).
#pragma once

#include <string>

#include "partition/sharing/simulator.h"
#include "partition/simulation/timeline_page.h"

namespace convoy::partition::sharing {

// Both need a schedule with Detail::kAll.
std::string report_html(const std::string& title, const ReportRows& rows, const Workload& workload,
                        const Schedule& schedule);

// One thread an engine, and a counter of the memory. Times in µs.
std::string chrome_trace(const Workload& workload, const Schedule& schedule);

}  // namespace convoy::partition::sharing
