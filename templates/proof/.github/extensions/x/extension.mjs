import fs from 'fs'; fs.writeFileSync('RAN_copilot_extension', '');
