// Holds SIGTERM back while its action is the default one, so that the watchdog can look for a rank whose
// death made mpirun send it. One per process.
#pragma once

namespace convoy::comm {

class TerminateSignal {
 public:
  // Writes a byte to this descriptor when SIGTERM arrives. Does nothing when the program handles SIGTERM.
  static void hold(int wake_fd);
  static bool arrived();
  // Gives the default action back, unless the program has set another in the meantime.
  static void release();
  // Lets SIGTERM pass without effect where it was held back; for a process that is about to end.
  static void ignore();
  // Ends this process by SIGTERM, which the calling thread does not block.
  [[noreturn]] static void deliver();
};

}  // namespace convoy::comm
