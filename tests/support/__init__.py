"""What tests of several rooms share: cases as text, brokers of several sizes, peers on loopback."""
