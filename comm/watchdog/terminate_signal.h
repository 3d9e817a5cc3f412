// Delays SIGTERM while its action is the process's default one. In the meantime the watchdog can
// find out whether a rank has died and mpirun has therefore sent SIGTERM to the others. All
// functions act on the whole process.
#pragma once

namespace convoy::comm {

class TerminateSignal {
 public:
  // Makes `handler`, which must end the process, the default action of SIGTERM for this class
  // instead of SIG_DFL. The caller installs it.
  static void set_default(void (*handler)(int));
  // From now on, a SIGTERM writes a byte to the descriptor `wake_fd` instead of ending the process.
  // Does nothing if the program has set an action that is not the default one.
  static void hold(int wake_fd);
  static bool arrived();
  // Restores the default action, unless the program has set another one.
  static void release();
  // If hold() has taken over SIGTERM, makes it have no effect from now on, even if it has already
  // arrived. Call this in a process that is about to end.
  static void ignore();
  // Ends this process by the default action of SIGTERM, which the calling thread must not block.
  [[noreturn]] static void deliver();
};

}  // namespace convoy::comm
