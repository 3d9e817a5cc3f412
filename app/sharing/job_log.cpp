#include "app/sharing/job_log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/spdlog.h>

#include <memory>

namespace convoy::app {
namespace {

thread_local std::string name_of_this_job;

class JobName final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg&, const std::tm&, spdlog::memory_buf_t& out) override {
    if (name_of_this_job.empty()) return;
    const std::string text = "job " + name_of_this_job + ": ";
    out.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<JobName>(); }
};

}  // namespace

LogName::LogName(const std::string& name) { name_of_this_job = name; }
LogName::~LogName() { name_of_this_job.clear(); }

void log_names_of_jobs() {
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<JobName>('*').set_pattern("convoy: %*%l: %v");
  spdlog::default_logger()->set_formatter(std::move(formatter));
}

}  // namespace convoy::app
