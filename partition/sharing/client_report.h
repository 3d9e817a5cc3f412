// Writes a schedule of clients that share a device. The output is a page with a timeline of every
// engine and of the memory, or Chrome trace JSON (chrome://tracing, Perfetto).
#pragma once

#include <string>

#include "partition/sharing/client_simulator.h"
#include "partition/simulation/timeline_page.h"

namespace convoy::partition::sharing {

// Both functions need a schedule that was simulated with Detail::kAll.
std::string report_html(const std::string& title, const ReportRows& rows, const Workload& workload,
                        const ClientSchedule& schedule);

// Writes one thread per engine and a counter for the memory. Times are in µs.
std::string chrome_trace(const Workload& workload, const ClientSchedule& schedule);

}  // namespace convoy::partition::sharing
